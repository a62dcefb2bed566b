"""Bytes of packed weights, told from a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hfbench.estimate.model import Reading, read_model
from hfbench.estimate.parts import Part
from hfbench.estimate.quantized import Scheme, scheme_of
from hfbench.estimate.runtimes import runtimes
from hfbench.estimate.settings import NotKnown
from hfbench.models.reference import Location

Read = Callable[..., Reading]
ConfigOf = Callable[..., dict[str, Any]]

INT4 = {"num_bits": 4, "group_size": 32}


def test_gpt_oss_20b_takes_the_bytes_of_its_real_files(read: Read, config_of: ConfigOf) -> None:
    assert read(config_of("gpt_oss")).model.weights.stored == 13_761_264_768


def test_a_type_that_is_asked_for_unpacks_everything(read: Read, config_of: ConfigOf) -> None:
    reading = read(config_of("gpt_oss"), dtype="bfloat16")
    assert reading.model.weights.stored == 2 * 20_914_757_184
    assert any("counted as unpacked" in guess for guess in reading.guesses)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 256 * 512 + 2 * 4 * 4),
        ({"quant_method": "fp8"}, 256 * 512 + 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 256 * 512 // 2 + 256 * 32 + 8),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 256 * 512 // 2 + 4 * 256 * 2 + 4 * 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 256 * 512 + 256 * 2 + 256 + 4 * 512),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 256 * 512 + 256 * 4),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 256 * 512 // 2 + 256 * 512 // 64 * 4),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": INT4}}},
            256 * 512 // 2 + 16 * 256 * 2,
        ),
    ],
    ids=["fp8-blocks", "fp8", "nvfp4", "awq", "gptq", "int8", "nf4", "compressed"],
)  # fmt: skip
def test_a_weight_takes_its_packed_bytes_and_its_scales(told: dict[str, Any], expected: int) -> None:
    scheme = scheme_of({"quantization_config": told})
    assert scheme is not None
    assert scheme.stored(Part("model.layers.{}.mlp.up_proj.weight", (256, 512), (0, 1))) == (2 * expected, 0)


def test_what_is_no_linear_layer_is_left(config_of: ConfigOf) -> None:
    scheme = scheme_of(config_of("gpt_oss", quantization_config={"quant_method": "fp8"}))
    assert scheme is not None
    for name, shape in [
        ("model.embed_tokens.weight", (16, 8)),
        ("lm_head.weight", (16, 8)),
        ("model.layers.{}.input_layernorm.weight", (8,)),
        ("model.layers.{}.mlp.router.weight", (4, 8)),
        ("model.layers.{}.mlp.gate.weight", (4, 8)),
        ("model.layers.{}.mlp.experts.down_proj_bias", (4, 8)),
    ]:
        assert scheme.stored(Part(name, shape))[0] == 0


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [
        ("model.layers.3.mlp", [3]),
        ("model.layers.3*", [3, 30, 31]),
        ("*up_proj", [3, 4, 30, 31]),
        ("mlp", [3, 4, 30, 31]),
        ("re:.*layers\\.[34]\\..*", [3, 4]),
        ("visual", []),
        ("re:(a+)+$", []),
        ("re:[", []),
    ],
)
def test_exceptions_name_modules_exactly_by_pattern_or_by_part(pattern: str, layers: list[int]) -> None:
    scheme = Scheme("fp8", lambda out, into: out * into, (pattern,))
    name = "model.layers.{}.mlp.up_proj.weight"
    assert [layer for layer in (3, 4, 30, 31) if scheme.excludes(name, layer)] == layers


def test_experts_may_be_packed_tighter_than_the_rest() -> None:
    scheme = scheme_of({"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"}})
    assert scheme is not None
    assert scheme.stored(Part("layers.{}.mlp.experts.down_proj", (4, 64, 64)))[0] == 4 * (64 * 32 + 64 * 2)


def test_no_configuration_of_it_means_no_scheme() -> None:
    assert scheme_of({}) is None
    assert scheme_of({"quantization_config": None}) is None


def test_the_file_of_modelopt_counts_where_the_configuration_is_silent() -> None:
    side = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    scheme = scheme_of({}, side)
    assert scheme is not None
    assert scheme.method == "fp8"


def test_a_file_of_modelopt_without_end_is_cut(write_folder: Any, config_of: ConfigOf) -> None:
    folder = write_folder(config_of("smollm2"))
    deep = '{"quantization": {"quant_algo": ' + "[" * 900 + "]" * 900 + "}}"
    (folder / "hf_quant_config.json").write_text(deep)
    reading = read_model(Location("model", folder, "local"), runtime=runtimes()["vllm"], dtype=None)
    assert reading.model.weights.stored == 2 * 134_515_008
    assert any("not known" in guess and len(guess) < 300 for guess in reading.guesses)


@pytest.mark.parametrize(
    "told",
    [{"quant_method": "brand-new"}, {"quant_method": "gptq", "bits": "4"}, {"quant_method": 7}, {"bits": 4}],
    ids=str,
)
def test_a_method_that_is_not_counted_is_named(told: dict[str, Any]) -> None:
    with pytest.raises(NotKnown):
        scheme_of({"quantization_config": told})
