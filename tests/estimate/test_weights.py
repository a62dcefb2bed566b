"""Bytes of weights: exact from headers, parameters of packed tensors, ranks and stages."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.estimate.model import Reading
from hfbench.estimate.placement import layer_of, place_of, split_of, stage_layers
from hfbench.estimate.weights import Layout, from_columns
from hfbench.models.columns import TensorColumns

Read = Callable[..., Reading]
ConfigOf = Callable[..., dict[str, Any]]
Tensors = dict[str, tuple[str, tuple[int, ...], int]]

TINY = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 16,
}


def columns(tensors: Tensors) -> TensorColumns:
    made = TensorColumns()
    ends = 0
    rows = []
    for name, (dtype, shape, size) in tensors.items():
        rows.append((name, dtype, shape, ends, ends + size))
        ends += size
    made.add_shard("model.safetensors", rows)
    return made


def test_headers_win_over_the_architecture(read: Read, config_of: ConfigOf) -> None:
    tensors: Tensors = {
        "model.embed_tokens.weight": ("BF16", (16, 8), 256),
        "model.layers.0.mlp.up_proj.weight": ("F32", (8, 8), 256),
    }
    reading = read(config_of("llama", **TINY), tensors)
    assert reading.source == "headers"
    assert (reading.model.weights.parameters, reading.model.weights.tensors) == (192, 2)
    assert reading.model.weights.stored == 512
    assert reading.model.weights.on_stages(Layout(), 2) == (384,)  # vLLM computes in 16 bit


def test_a_head_that_is_stored_though_tied_is_counted_once(read: Read, config_of: ConfigOf) -> None:
    tensors: Tensors = {
        "model.embed_tokens.weight": ("BF16", (16, 8), 256),
        "lm_head.weight": ("BF16", (16, 8), 256),
    }
    tied = read(config_of("llama", **TINY, tie_word_embeddings=True), tensors)
    assert tied.model.weights.parameters == 128
    assert (tied.model.weights.stored, tied.model.weights.unused) == (512, 256)
    assert any("are not loaded" in guess for guess in tied.guesses)


def test_an_untied_head_is_counted(read: Read, config_of: ConfigOf) -> None:
    tensors: Tensors = {
        "model.embed_tokens.weight": ("BF16", (16, 8), 256),
        "lm_head.weight": ("BF16", (16, 8), 256),
    }
    assert read(config_of("llama", **TINY), tensors).model.weights.parameters == 256


def test_layers_for_speculation_are_stored_and_not_loaded(read: Read, config_of: ConfigOf) -> None:
    tensors: Tensors = {f"model.layers.{n}.mlp.up_proj.weight": ("BF16", (8, 8), 128) for n in range(3)}
    weights = read(config_of("llama", **TINY), tensors).model.weights
    assert (weights.parameters, weights.stored, weights.unused) == (128, 384, 128)


@pytest.mark.parametrize(
    ("tensors", "bits", "parameters"),
    [
        ({"m.qweight": ("I32", (8, 16), 512), "m.qzeros": ("I32", (1, 2), 8), "m.scales": ("F16", (1, 16), 32),
          "m.g_idx": ("I32", (64,), 256)}, 4, 64 * 16),
        ({"m.weight_packed": ("I32", (16, 8), 512), "m.weight_scale": ("F16", (16, 1), 32),
          "m.weight_shape": ("I64", (2,), 16)}, 4, 16 * 64),
        ({"m.weight": ("U8", (16, 32), 512), "m.weight_scale": ("F8_E4M3", (16, 4), 64),
          "m.weight_scale_2": ("F32", (), 4), "m.input_scale": ("F32", (), 4)}, None, 16 * 64),
        ({"m.down_proj_blocks": ("U8", (2, 8, 2, 16), 512), "m.down_proj_scales": ("U8", (2, 8, 2), 32)}, None, 1024),
        ({"m.weight": ("F8_E4M3", (16, 64), 1024), "m.weight_scale_inv": ("F32", (1, 1), 4)}, None, 1024),
        ({"m.weight": ("U8", (512, 1), 512), "m.weight.absmax": ("F32", (16,), 64),
          "m.weight.quant_map": ("F32", (16,), 64),
          "m.weight.quant_state.bitsandbytes__nf4": ("U8", (80,), 80)}, None, 1024),
        ({"m.weight": ("I8", (16, 64), 1024), "m.SCB": ("F32", (16,), 64)}, None, 1024),
        ({"m.weight": ("F4", (16, 64), 512)}, None, 1024),
    ],
    ids=["gptq", "compressed-tensors", "nvfp4", "mxfp4", "fp8", "nf4", "int8", "f4"],
)  # fmt: skip
def test_packed_weights_count_their_values_and_scales_count_nothing(
    tensors: Tensors, bits: int | None, parameters: int
) -> None:
    weights = from_columns(columns(tensors), layers=None, tied=None, bits=bits)
    assert weights.parameters == parameters
    assert weights.stored == sum(size for _, _, size in tensors.values())


def test_packed_bytes_stay_and_others_take_the_computing_type() -> None:
    tensors: Tensors = {
        "model.layers.0.mlp.up_proj.weight": ("F8_E4M3", (8, 8), 64),
        "model.layers.0.mlp.up_proj.weight_scale_inv": ("F32", (1, 1), 4),
        "model.norm.weight": ("F32", (8,), 32),
    }
    weights = from_columns(columns(tensors), layers=1, tied=None, bits=None)
    assert weights.on_stages(Layout(), 2) == (64 + 4 + 16,)
    assert weights.on_stages(Layout(), 4) == (64 + 4 + 32,)


@pytest.mark.parametrize(
    ("name", "place", "split"),
    [
        ("model.embed_tokens.weight", "first", "words"),
        ("lm_head.weight", "last", "words"),
        ("output.weight", "last", "words"),
        ("model.layers.3.mlp.output.weight", 3, "tensor"),
        ("model.my_output.weight", "first", "tensor"),
        ("model.norm.weight", "last", "copied"),
        ("model.layers.3.self_attn.q_proj.weight", 3, "tensor"),
        ("model.layers.3.self_attn.k_proj.weight", 3, "keys"),
        ("model.layers.3.self_attn.kv_a_proj_with_mqa.weight", 3, "copied"),
        ("model.layers.3.mlp.gate.weight", 3, "copied"),
        ("model.layers.3.mlp.gate_proj.weight", 3, "tensor"),
        ("model.layers.3.mlp.experts.7.up_proj.weight", 3, "experts"),
        ("model.layers.3.mlp.shared_experts.up_proj.weight", 3, "tensor"),
        ("transformer.h.11.attn.c_attn.weight", 11, "tensor"),
        ("model.visual.blocks.5.attn.qkv.weight", "first", "tensor"),
        ("vision_model.encoder.layers.5.mlp.fc1.weight", "first", "tensor"),
    ],
)
def test_a_tensor_is_placed_by_its_name(name: str, place: object, split: str) -> None:
    assert (place_of(name), split_of(name, 1 if name.endswith("norm.weight") else 2)) == (place, split)


def test_a_layer_number_of_a_million_digits_is_none() -> None:
    assert layer_of(f"model.layers.{'9' * 1000}.w") is None


@given(st.integers(1, 200), st.integers(1, 32))
def test_stages_hold_every_layer_once_and_differ_by_one(layers: int, stages: int) -> None:
    ranges = stage_layers(layers, min(stages, layers))
    assert [layer for held in ranges for layer in held] == list(range(layers))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@pytest.mark.parametrize("claimed", [10**7, 10**18])
def test_a_number_of_layers_that_is_only_claimed_costs_nothing(claimed: int) -> None:
    names = {f"model.layers.{layer}.mlp.up_proj.weight": ("BF16", (4, 4), 32) for layer in range(3)}
    weights = from_columns(columns(names), layers=claimed, tied=False, bits=None)
    tracemalloc.start()
    begun = process_time()
    assert sum(weights.on_stages(Layout(pp=4), 2.0)) == 3 * 32
    assert process_time() - begun < 0.5
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_ranks_share_what_can_be_divided(read: Read, config_of: ConfigOf) -> None:
    weights = read(config_of("llama")).model.weights
    (alone,), (two,) = (weights.on_stages(Layout(tp=tp, kv_heads=8), 2) for tp in (1, 2))
    norms = 65 * 4096 * 2
    assert two * 2 == alone + norms


def test_rows_of_the_vocabulary_are_padded_as_the_runtime_does(read: Read, config_of: ConfigOf) -> None:
    weights = read(config_of("llama", vocab_size=128_250, tie_word_embeddings=False)).model.weights
    assert weights.words == 128_250
    (plain,), (padded,) = (weights.on_stages(Layout(pad=pad), 2) for pad in (1, 64))
    assert padded - plain == 2 * 6 * 4096 * 2
    (half,) = weights.on_stages(Layout(tp=2, pad=64, kv_heads=8), 2)
    assert half * 2 == padded + 65 * 4096 * 2  # norms are on both ranks


def test_the_fullest_stage_counts_when_layers_do_not_divide(read: Read, config_of: ConfigOf) -> None:
    weights = read(config_of("llama", num_hidden_layers=10, vocab_size=64)).model.weights
    stages = weights.on_stages(Layout(pp=4), 2)
    layer = 2 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336 + 2 * 4096)
    assert [round(stage / layer) for stage in stages] == [2, 3, 3, 2]
    assert max(stages) == 3 * layer


def test_experts_are_divided_among_their_own_ranks(read: Read, config_of: ConfigOf) -> None:
    weights = read(config_of("qwen3_next")).model.weights
    experts = 48 * 512 * 3 * 2048 * 512 * 2
    (alone,), (spread,) = (weights.on_stages(Layout(ep=ep), 2) for ep in (1, 8))
    assert alone - spread == experts * 7 // 8


def test_a_tied_head_is_on_the_last_stage_as_well(read: Read, config_of: ConfigOf) -> None:
    weights = read(config_of("smollm2")).model.weights
    embedding = 49152 * 576 * 2
    assert sum(weights.on_stages(Layout(pp=2), 2)) == weights.stored + embedding


def test_files_in_another_format_are_counted_by_the_architecture(
    read: Read, config_of: ConfigOf, write_folder: Any
) -> None:
    reading = read(config_of("smollm2"))
    assert reading.source == "architecture"
    assert reading.model.weights.stored == 2 * 134_515_008
    assert "weights are counted from the architecture, not from headers" in reading.guesses
