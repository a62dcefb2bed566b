"""Rules over several options of a plan: each has a recipe that passes and one that does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_model import config, make

from hfbench.engines.builders.base import Asked
from hfbench.engines.runtimes.cards import Cards, cards_named
from hfbench.engines.runtimes.subject import ServedModel, read_served
from hfbench.engines.trtllm.recipe import make_recipe
from hfbench.engines.trtllm.rules import RULES, judge_plan

ASKED = Asked(
    model="", builder="trtllm", batch=1, min_prompt=1, max_prompt=16, context=32, dtype="auto", gpu=None,
    template="dense-bf16",
)  # fmt: skip
H100 = replace(cards_named("H100"), present=8)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of two layers, two heads, one KV head; its context is 32."""
    return make(tmp_path_factory.mktemp("models") / "model")


def faults(model: ServedModel, cards: Cards = H100, settings: tuple[str, ...] = (), **asked: object) -> set[str]:
    """The rules that find something, with the severity where it is no error."""
    recipe = make_recipe(model, replace(ASKED, settings=settings, **asked))  # type: ignore[arg-type]
    found = judge_plan(recipe, model, cards)
    assert all(each.rule and each.found for each in found)
    return {each.rule if each.severity == "error" else f"{each.rule} warning" for each in found}


def test_a_sound_recipe_breaks_no_rule(llama: Path) -> None:
    assert faults(read_served(str(llama))) == set()
    assert len(RULES) == 10


@pytest.mark.parametrize(
    ("rule", "asked", "settings"),
    [
        ("length", {"context": 33}, ()),
        ("length", {"max_prompt": 40, "context": 32}, ()),
        ("tokens", {"batch": 16}, ("max_num_tokens=8",)),
        ("tokens", {}, ("max_num_tokens=8", "use_paged_context_fmha=disable")),
        ("tokens", {}, ("opt_num_tokens=9000",)),
        ("tokens warning", {}, ("remove_input_padding=disable",)),
        ("ranks", {"tp": 4}, ()),
        ("ranks", {"pp": 3}, ()),
        ("ranks", {"tp": 2, "pp": 8}, ()),
        ("ranks", {}, ("workers=2",)),
        ("dtype", {"dtype": "fp16"}, ()),
        ("dtype", {}, ("gpt_attention_plugin=float16",)),
        ("quantisation", {}, ("gemm_plugin=nvfp4",)),
        ("quantisation", {}, ("low_latency_gemm_plugin=fp8",)),
        ("cache", {}, ("kv_cache_type=continuous", "use_paged_context_fmha=enable")),
        ("cache", {}, ("tokens_per_block=48",)),
        ("cache", {}, ("streamingllm=enable",)),
        ("speculation", {}, ("max_draft_len=4",)),
        ("speculation", {}, ("speculative_decoding_mode=medusa",)),
        ("lora", {}, ("lora_dir=/adapters",)),
        ("calibration warning", {"template": "fp8"}, ()),
    ],
)
def test_options_that_exclude_each_other_are_found(
    llama: Path, rule: str, asked: dict[str, object], settings: tuple[str, ...]
) -> None:
    assert rule in faults(read_served(str(llama)), settings=settings, **asked)


def test_a_scheme_that_the_card_lacks_is_refused(llama: Path) -> None:
    model = read_served(str(llama))
    assert "quantisation" in faults(model, cards_named("A10"), template="fp8")
    assert "quantisation" not in faults(model, cards_named("L4"), template="fp8")
    assert "dtype" in faults(model, cards_named("T4"))
    assert "dtype" not in faults(model, cards_named("T4"), template="dense-fp16")


def test_own_calibration_texts_fetch_nothing(llama: Path) -> None:
    found = faults(read_served(str(llama)), template="fp8", settings=("convert.calib_dataset=/texts",))
    assert "calibration warning" not in found


def test_weights_that_are_packed_already_are_not_packed_again(tmp_path: Path) -> None:
    model = make(tmp_path / "model")
    config(quantization_config={"quant_method": "gptq", "bits": 4})(model)
    assert "quantisation" in faults(read_served(str(model)), template="fp8")


def test_an_architecture_of_the_other_backend_alone_is_refused(tmp_path: Path) -> None:
    model = make(tmp_path / "model")
    config(model_type="gpt_oss", architectures=["GptOssForCausalLM"])(model)
    assert "architecture" in faults(read_served(str(model)))
