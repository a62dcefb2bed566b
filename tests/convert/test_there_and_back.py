"""Hugging Face to Megatron and back: every family comes back to the bit, by the actions, from every layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from hf_models import NAMES, Checkpoint, checkpoint

from hfbench.actions.convert_hf import ConvertHf
from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.safetensors_writer import Entry, SafetensorsWriter
from hfbench.convert.stored import Stored
from hfbench.jobs.run import Run

EXPERTS = ("mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3")
WIDTH = {"BF16": 2, "F32": 4}


def random_bits(model: Checkpoint) -> dict[str, bytes]:
    """Any bits at all, NaN among them; copies that a checkpoint repeats are the same."""
    source = numpy.random.default_rng(7)
    sizes = {name: spec.rows * spec.columns * WIDTH[spec.dtype] for name, spec in model.specs.items()}
    found = {name: source.bytes(size) for name, size in sizes.items()}
    return found | {copy: found[first] for copy, first in plan_megatron(model.config, model.specs, Destination()).twins}


def save(folder: Path, model: Checkpoint, bits: dict[str, bytes]) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model.config, indent=1))
    with (folder / "model.safetensors").open("wb") as file:
        writer = SafetensorsWriter(file, [Entry(name, each.dtype, each.shape) for name, each in model.specs.items()])
        for name, data in bits.items():
            writer.write(name, [data])
        writer.finish()


def read(folder: Path) -> dict[str, tuple[TensorSpec, bytes]]:
    """Each tensor of a folder: name, dtype, shape and bits."""
    found = {}
    for name, tensor in open_tensors(folder).tensors.items():
        assert isinstance(tensor, Stored)
        size = tensor.spec.rows * tensor.spec.columns * WIDTH[tensor.spec.dtype]
        found[name] = (tensor.spec, tensor.file.read_bytes()[tensor.begin : tensor.begin + size])
    return found


@pytest.mark.parametrize("format", ["torch", "torch_dist"])
@pytest.mark.parametrize("layout", [{"pp": 2, "names": "local"}, {"tp": 2, "pp": 2}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_family_comes_back_to_the_bit(name: str, layout: dict[str, Any], format: Any, tmp_path: Path) -> None:
    model = checkpoint(name)
    experts = {"ep": 2} if name in EXPERTS and "tp" in layout else {}
    source, out, back = tmp_path / "source", tmp_path / "there", tmp_path / "back"
    save(source, model, random_bits(model))
    ConvertMegatron(model=str(source), out=out, format=format, **layout, **experts).perform(Run())
    ConvertHf(checkpoint=out, out=back).perform(Run())
    assert read(back) == read(source)
    assert (back / "config.json").read_bytes() == (source / "config.json").read_bytes()
