"""Logits by our own forward pass: right checkpoints of every family agree with transformers, wrong ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faulty import WRONG_ARGS, write_megatron
from tiny_models import MODELS, Tiny, make_tiny

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.forward import forward_wall
from hfbench.convert.walls.results import ForwardWall
from hfbench.convert.walls.sides import sides_of
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run

RUN = Run()
DIVIDED: dict[str, dict[str, Any]] = {
    "llama": {"tp": 2, "pp": 2, "te": True},
    "tied": {"tp": 2, "pp": 4},
    "qwen2": {"tp": 4},  # more ranks than key heads
    "qwen2_moe": {"tp": 2, "ep": 2, "te": True},
    "deepseek_v3": {"tp": 2, "ep": 2, "te": True},
    "gpt2": {"tp": 2, "pp": 2},
}


def wall(judging: Judging, source: Path, converted: Path) -> ForwardWall:
    return forward_wall(judging, sides_of(source, converted), RUN)


@pytest.mark.parametrize("name", MODELS)
def test_right_checkpoint_of_each_family_is_proven(name: str, tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    found = wall(judging, tiny(name), write_megatron(tiny(name), tmp_path / "mg"))
    assert found.verdict == "proven"
    assert found.relative < 5e-6
    assert found.top5 == 1.0
    assert found.positions == 24 + 24 + 128


@pytest.mark.parametrize("name", DIVIDED)
def test_ranks_are_put_together_again(name: str, tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    found = wall(judging, tiny(name), write_megatron(tiny(name), tmp_path / "mg", **DIVIDED[name]))
    assert (found.verdict, found.relative < 5e-6) == ("proven", True)


def test_stages_of_different_depth(tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    found = wall(judging, tiny("llama"), write_megatron(tiny("llama"), tmp_path / "mg", pp=2, first=1))
    assert (found.verdict, found.relative < 5e-6) == ("proven", True)


@pytest.mark.parametrize(
    ("name", "fault", "layer", "tensor"),
    [
        ("llama", "qkv_concat", 0, "mp_rank_00_000:decoder.layers.0.self_attention.linear_qkv query"),
        ("llama", "tp_swap", -1, "embedding.word_embeddings.weight"),
        ("llama", "glu_halves", 0, "mp_rank_00_000:decoder.layers.0.mlp.linear_fc1 gate"),
        ("llama", "gate_up_swapped", 0, "mp_rank_00_000:decoder.layers.0.mlp.linear_fc1 gate"),
        ("llama", "pp_offset", 2, "mp_rank_00_001:decoder.layers.0.input_layernorm.weight"),
        ("llama", "nan", 2, "mp_rank_00_001:decoder.layers.0.mlp.linear_fc2.weight"),
        ("tied", "tied_stale", 4, "mp_rank_00_001:output_layer.weight or decoder.final_layernorm.weight"),
        ("qwen2", "bias_zeroed", 0, "mp_rank_00_000:decoder.layers.0.self_attention.linear_qkv query"),
        ("mixtral", "expert_order", 0, "mlp.experts, their order, or how the router weighs them"),
    ],
)
def test_fault_is_caught_and_its_place_named(
    name: str, fault: str, layer: int, tensor: str, tiny: Tiny, judging: Judging, tmp_path: Path
) -> None:
    found = wall(judging, tiny(name), write_megatron(tiny(name), tmp_path / "mg", tp=2, pp=2, fault=fault))
    assert found.verdict == "differs"
    assert found.relative > 1e-2
    assert found.first_difference is not None
    assert (found.first_difference.layer, found.first_difference.tensor) == (layer, tensor)


@pytest.mark.parametrize(
    ("name", "fault", "tensor"),
    [
        ("llama", "eps", "input_layernorm.weight"),
        ("llama", "rope", "how positions turn queries and keys"),
        ("scaled", "noscale", "how positions turn queries and keys"),
        ("qwen3", "no_qk_norm", "how positions turn queries and keys"),
    ],
)
def test_wrong_argument_is_caught(
    name: str, fault: str, tensor: str, tiny: Tiny, judging: Judging, tmp_path: Path
) -> None:
    found = wall(judging, tiny(name), write_megatron(tiny(name), tmp_path / "mg", **WRONG_ARGS[fault]))
    assert found.verdict == "differs"
    assert found.relative > 1e-4
    assert found.first_difference is not None
    assert tensor in found.first_difference.tensor


def test_only_the_layers_that_part_are_told(tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    """Each layer is given the reference's input, so that one wrong layer does not spoil those behind it."""
    found = wall(judging, tiny("llama"), write_megatron(tiny("llama"), tmp_path / "mg", tp=2, pp=2, fault="nan"))
    assert found.first_difference is not None
    assert found.first_difference.layers == (2,)


def test_other_copy_on_one_rank_is_told(tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    """The first rank's copy is right, and the logits with it: Megatron would use the wrong one too."""
    made = write_megatron(tiny("llama"), tmp_path / "mg", tp=2, pp=2, fault="norm_of_one_rank")
    found = wall(judging, tiny("llama"), made)
    assert (found.verdict, found.relative < 1e-5) == ("differs", True)
    assert found.unequal_copies == ("mp_rank_00_001:decoder.layers.0.input_layernorm.weight",)


def test_missing_tensor_is_named(tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    found = wall(judging, tiny("llama"), write_megatron(tiny("llama"), tmp_path / "mg", tp=2, pp=2, fault="missing"))
    assert found.verdict == "differs"
    assert "mp_rank_01_001:decoder.layers.0.mlp.linear_fc2.weight" in found.reason


def test_narrow_weights_are_compared_in_float32(judging: Judging, tmp_path: Path) -> None:
    """bfloat16 on both sides."""
    narrow = make_tiny("llama", tmp_path / "narrow", dtype="bfloat16")
    found = wall(judging, narrow, write_megatron(narrow, tmp_path / "mg", tp=2))
    assert (found.verdict, found.relative < 5e-6) == ("proven", True)


def test_layers_widened_as_they_compute_give_the_same_logits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done where the whole model in float32 would not fit: nothing changes, and the weights stay narrow."""
    import torch

    from hfbench.convert.walls.reference import Reference

    narrow = make_tiny("llama", tmp_path / "narrow", dtype="bfloat16")
    wide = Reference(narrow, "bfloat16")
    monkeypatch.setattr("hfbench.convert.walls.reference.free_memory", lambda: 0)
    lean, tokens = Reference(narrow, "bfloat16"), [torch.arange(30)]
    for _ in range(2):
        assert torch.equal(next(wide.logits(tokens)), next(lean.logits(tokens)))
    assert {each.dtype for each in lean.layers.parameters()} == {torch.bfloat16}
    assert {each.dtype for each in wide.layers.parameters()} == {torch.float32}


def test_reference_that_does_not_fit_into_memory(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before transformers takes it and the kernel ends the process."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:        1000 kB\nMemAvailable:     100 kB\n")
    monkeypatch.setattr("hfbench.convert.walls.memory.MEMORY", meminfo)
    sides = sides_of(tiny("llama"), write_megatron(tiny("llama"), tmp_path / "mg"))
    with pytest.raises(HfbenchError, match=r"would need .* of memory, 100 KiB are free\. Compare the weights alone"):
        sides.opening()
