"""megatron-core itself, on the CPU, runs what `hfbench convert megatron` writes and gives transformers' logits.

The matrix of families, layouts and formats is long: HFBENCH_FULL_MATRIX=1 asks for all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_models import Tiny, make_tiny

from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.forward import forward_wall
from hfbench.convert.walls.sides import sides_of
from hfbench.jobs.run import Run

Hfbench = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.slow

TIED = {"tie_word_embeddings": True}
DEEP = {"num_hidden_layers": 4}
FEW: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("qwen2", TIED, {"tp": 2, "pp": 2}),
    ("qwen2_moe", {}, {"format": "torch_dist"}),
    ("llama", {}, {"tp": 4, "pp": 2, "first_stage_layers": 1}),  # more ranks than key heads, uneven stages
]
FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "mixtral", "qwen2_moe", "qwen3_moe")


def matrix() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, changes of the configuration, fields of the conversion."""
    for format in ("torch", "torch_dist"):
        for name in FAMILIES:
            for changes in ({}, TIED):
                for tp, pp in ((1, 1), (2, 1), (2, 2)):
                    yield name, changes, {"tp": tp, "pp": pp, "format": format}
            yield name, {}, {"tp": 4, "format": format}
            yield name, DEEP, {"pp": 3, "first_stage_layers": 1, "last_stage_layers": 1, "format": format}
        yield "scaled", {}, {"tp": 2, "pp": 2, "format": format}
        yield "gpt2", {}, {"tp": 2, "pp": 2, "format": format}


def words(case: tuple[str, dict[str, Any], dict[str, Any]]) -> str:
    name, changes, fields = case
    return "-".join([name, *changes, *(f"{key}={value}" for key, value in fields.items())])


@pytest.mark.parametrize("case", FEW, ids=words)
def test_megatron_runs_what_the_command_writes(
    case: tuple[str, dict[str, Any], dict[str, Any]], hfbench: Hfbench, megatron_python: Path, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    name, changes, fields = case
    source, out = make_tiny(name, tmp_path / "source", **changes), tmp_path / "megatron"
    options = [word for key, value in fields.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    ended = hfbench("convert", "megatron", source, "--out", out, *options)
    assert ended.returncode == 0, ended.stderr
    asked = ("--walls", "weights,forward", "--environment", megatron_python, "--json")
    ended = hfbench("verify", source, out, *asked)
    assert ended.returncode == 0, ended.stderr or ended.stdout
    told = json.loads(ended.stdout)
    core = told["walls"]["forward"]["core"]
    assert (told["verdict"], core["verdict"], core["top5"]) == ("proven", "proven", 1.0)
    assert (core["tp"], core["pp"]) == (fields.get("tp", 1), fields.get("pp", 1))
    assert 0 < core["relative"] < 1e-5


@pytest.mark.skipif("HFBENCH_FULL_MATRIX" not in os.environ, reason="HFBENCH_FULL_MATRIX is not set")
@pytest.mark.parametrize("case", [*matrix()], ids=words)
def test_all_families_layouts_and_formats(
    case: tuple[str, dict[str, Any], dict[str, Any]],
    tiny: Tiny,
    judging: Judging,
    megatron_python: Path,
    tmp_path: Path,
) -> None:
    name, changes, fields = case
    source = make_tiny(name, tmp_path / "source", **changes) if changes else tiny(name)
    ConvertMegatron(model=str(source), out=tmp_path / "megatron", **fields).perform(Run())
    found = forward_wall(judging, sides_of(source, tmp_path / "megatron"), Run(), megatron_python)
    assert found.core
    assert (found.verdict, found.core.verdict) == ("proven", "proven"), found.core.reason
    assert found.core.relative < 1e-5
