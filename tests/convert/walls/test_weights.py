"""Every fault that weights can have is caught by their bits, and the tensor is named; arguments by config.json."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
from faulty import FAULTS, WRONG_ARGS, write_megatron
from tiny_models import MODELS, Tiny

from hfbench.convert.walls.results import WeightsWall
from hfbench.convert.walls.sides import sides_of
from hfbench.convert.walls.verify import first_wall
from hfbench.jobs.run import Run

LAST = "mp_rank_01_001:decoder.layers.0."
KINDS: dict[str, tuple[str, str]] = {
    "qkv_concat": ("values", "mp_rank_00_000:decoder.layers.0.self_attention.linear_qkv.weight"),
    "tp_swap": ("values", "mp_rank_00_000:embedding.word_embeddings.weight"),
    "glu_halves": ("values", "mp_rank_00_000:decoder.layers.0.mlp.linear_fc1.weight"),
    "gate_up_swapped": ("values", "mp_rank_00_000:decoder.layers.0.mlp.linear_fc1.weight"),
    "pp_offset": ("values", "mp_rank_00_001:decoder.layers.0.input_layernorm.weight"),
    "one_bit": ("values", LAST + "mlp.linear_fc2.weight"),
    "padding": ("padding", "mp_rank_01_001:output_layer.weight"),
    "nan": ("values", LAST + "mlp.linear_fc2.weight"),
    "missing": ("missing", LAST + "mlp.linear_fc2.weight"),
    "norm_of_one_rank": ("values", LAST + "input_layernorm.weight"),
    "surplus": ("surplus", "mp_rank_01_001:decoder.layers.7.mlp.linear_fc2.weight"),
}


def wall(source: Path, converted: Path) -> WeightsWall:
    return first_wall(sides_of(source, converted), Run())


def test_each_fault_has_a_case() -> None:
    assert set(KINDS) == set(FAULTS)


@pytest.mark.parametrize("name", MODELS)
def test_right_checkpoint_of_each_family_is_proven(name: str, tiny: Tiny, tmp_path: Path) -> None:
    layout = {"tp": 2, "pp": 2} if "deepseek" not in name else {"tp": 2, "ep": 2}
    found = wall(tiny(name), write_megatron(tiny(name), tmp_path / "mg", te=True, **layout))
    assert (found.verdict, found.differences, found.facts) == ("proven", (), ())
    assert found.tensors > 20


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught_and_its_tensor_named(fault: str, tiny: Tiny, tmp_path: Path) -> None:
    found = wall(tiny("llama"), write_megatron(tiny("llama"), tmp_path / "mg", tp=2, pp=2, fault=fault))
    assert found.verdict == "differs"
    assert (found.differences[0].kind, found.differences[0].tensor) == KINDS[fault]
    if fault == "one_bit":
        assert [each.elements for each in found.differences] == [1]
        assert found.differences[0].found.startswith("element [3, 5] is ")


@pytest.mark.parametrize(
    ("name", "fault", "tensor"),
    [
        ("tied", "tied_stale", "output_layer.weight"),
        ("qwen2", "bias_zeroed", "linear_qkv.bias"),
        ("mixtral", "expert_order", "local_experts.0.linear_fc1.weight"),
        ("deepseek_v3", "router_bias_cast", "mlp.router.expert_bias"),
    ],
)
def test_fault_of_other_families_is_caught(name: str, fault: str, tensor: str, tiny: Tiny, tmp_path: Path) -> None:
    layout = {"pp": 2} if fault == "tied_stale" else {}
    found = wall(tiny(name), write_megatron(tiny(name), tmp_path / "mg", tp=2, fault=fault, **layout))
    assert found.verdict == "differs"
    assert found.differences[0].tensor.endswith(tensor)


@pytest.mark.parametrize(
    ("name", "fault"),
    [("llama", "eps"), ("llama", "rope"), ("scaled", "noscale"), ("qwen3", "no_qk_norm")],
)
def test_argument_that_no_weight_shows_is_caught(name: str, fault: str, tiny: Tiny, tmp_path: Path) -> None:
    found = wall(tiny(name), write_megatron(tiny(name), tmp_path / "mg", **WRONG_ARGS[fault]))
    assert (found.verdict, found.differences) == ("differs", ())
    assert [each.argument for each in found.facts] == list(WRONG_ARGS[fault])


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_query_groups": None},
        {"untie_embeddings_and_output_weights": None},
        {"add_qkv_bias": None},
        {"rotary_percent": 0.5},
        {"normalization": None},
        {"kv_channels": 8},
    ],
    ids=str,
)
def test_argument_that_is_wrong_or_not_stated(wrong: dict[str, Any], tiny: Tiny, tmp_path: Path) -> None:
    """What is not stated counts as Megatron's default."""
    found = wall(tiny("qwen2"), write_megatron(tiny("qwen2"), tmp_path / "mg", **wrong))
    assert found.verdict == "differs"
    assert next(iter(wrong)) in [each.argument for each in found.facts]


def test_padding_may_repeat_the_last_row(tiny: Tiny, tmp_path: Path) -> None:
    """As Megatron's own converter fills it."""
    import torch

    made = write_megatron(tiny("llama"), tmp_path / "mg")
    path = next(made.rglob("*.pt"))
    stored = torch.load(path, weights_only=False)
    for name in ("embedding.word_embeddings.weight", "output_layer.weight"):
        stored["model"][name][250:] = stored["model"][name][249]
    torch.save(stored, path)
    assert wall(tiny("llama"), made).verdict == "proven"


def test_cast_is_compared_with_its_own_rounding(tiny: Tiny, tmp_path: Path) -> None:
    import torch

    made = write_megatron(tiny("llama"), tmp_path / "mg")
    path = next(made.rglob("*.pt"))
    stored = torch.load(path, weights_only=False)
    stored["model"] = {name: each.bfloat16() for name, each in stored["model"].items()}
    torch.save(stored, path)
    found = wall(tiny("llama"), made)
    assert (found.verdict, found.cast) == ("proven", "F32 to BF16")
    stored["model"]["decoder.layers.1.mlp.linear_fc2.weight"].view(torch.int16)[0, 0] += 1  # the next bfloat16
    torch.save(stored, path)
    assert [each.elements for each in wall(tiny("llama"), made).differences] == [1]


def test_folder_of_the_same_names_is_compared_too(tiny: Tiny, tmp_path: Path) -> None:
    """Hugging Face to Hugging Face: what came back from Megatron, or was repacked."""
    copy = shutil.copytree(tiny("llama"), tmp_path / "copy")
    assert wall(tiny("llama"), copy).verdict == "proven"
    weights = copy / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 0x80
    weights.write_bytes(raw)
    found = wall(tiny("llama"), copy)
    assert [each.kind for each in found.differences] == ["values"]


def test_sides_may_change_places(tiny: Tiny, tmp_path: Path) -> None:
    made = write_megatron(tiny("qwen3"), tmp_path / "mg", tp=2)
    sides = sides_of(made, tiny("qwen3"))
    assert (sides.swapped, sides.reference, sides.converted) == (True, tiny("qwen3"), made)
    assert first_wall(sides, Run()).verdict == "proven"


def test_shape_that_contradicts_the_configuration(tiny: Tiny, tmp_path: Path) -> None:
    made = write_megatron(tiny("llama"), tmp_path / "mg")
    config = json.loads((tiny("llama") / "config.json").read_text())
    other = shutil.copytree(tiny("llama"), tmp_path / "other")
    (other / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))
    assert [each.argument for each in wall(other, made).facts] == ["norm_epsilon"]


def test_wall_reads_half_a_gigabyte_a_second_a_core(tmp_path: Path) -> None:
    """From the page cache, by one thread's CPU time: other work on the machine does not count."""
    from time import thread_time

    from hfbench.convert.boxes import Box, Copy, TensorSpec
    from hfbench.convert.plan import Target
    from hfbench.convert.stored import Stored, TensorSet
    from hfbench.convert.walls.weights import Comparing

    data = numpy.random.default_rng(1).integers(0, 1 << 16, 1 << 25, "<u2")  # 64 MiB
    for name in ("a", "b"):
        data.tofile(tmp_path / name)
    spec = TensorSpec("w", "BF16", (8192, 4096))
    sets = [TensorSet(folder=tmp_path, tensors={"w": Stored(spec, tmp_path / name, 0)}) for name in ("a", "b")]
    box = Box(0, 8192, 0, 4096)
    comparing, target = Comparing(*sets), Target(spec, "", (Copy("w", box, "w", box),), "copy")
    began = thread_time()
    assert comparing.compare(target) is None
    assert data.nbytes / (thread_time() - began) > 0.5e9
