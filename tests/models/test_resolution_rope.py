"""RoPE before and after, in transformers and in vLLM; transformers itself is the judge where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.rope_rules import read_in_transformers, read_in_vllm

YARN = {"rope_type": "yarn", "factor": 4.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
FACTORS = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}


def both(section: dict[str, Any], model_type: str = "llama", theta: Any = 10000.0) -> tuple[Any, Any]:
    first = read_in_transformers(section, model_type, {"theta": theta, "context": 2048})
    return first, read_in_vllm(section, first)


def test_nothing_told_gives_the_default_type_and_the_class_theta() -> None:
    first, second = both({}, theta=500000.0)
    assert first.parameters == second.parameters == {"rope_theta": 500000.0, "rope_type": "default"}


def test_legacy_type_becomes_rope_type() -> None:
    first, second = both({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 5e5})
    assert first.parameters == {"type": "linear", "factor": 2.0, "rope_theta": 5e5, "rope_type": "linear"}
    assert second.faults == []


def test_su_is_longrope_in_vllm_and_unknown_to_a_llama_in_transformers() -> None:
    section = {"rope_scaling": {"type": "su", **FACTORS}, "original_max_position_embeddings": 32}
    first, second = both(section)
    assert "rope type 'su' is not known" in first.later_faults[0]
    assert second.parameters["rope_type"] == "longrope"
    assert second.parameters["original_max_position_embeddings"] == 32
    assert second.faults == second.later_faults == []


def test_mrope_needs_sections() -> None:
    first, second = both({"rope_scaling": {"type": "mrope"}})
    assert first.later_faults
    assert second.faults == ["the legacy type 'mrope' needs mrope_section"]
    _, with_sections = both({"rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}})
    assert with_sections.parameters["rope_type"] == "default"
    assert with_sections.faults == with_sections.later_faults == []


def test_telechat_yarn_gets_its_attention_factor() -> None:
    _, second = both({"rope_scaling": {"rope_type": "telechat3-yarn", "factor": 1.0}, "max_position_embeddings": 64})
    assert second.parameters["rope_type"] == "yarn"
    assert second.parameters["attention_factor"] == 1.0


def test_types_that_conflict_stop_vllm_and_pass_transformers() -> None:
    first, second = both({"rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2.0}})
    assert first.faults == []
    assert "conflict" in second.faults[0]
    assert "dropped in silence" in first.notes[0]


@pytest.mark.parametrize(("type_", "lacking"), [("yarn", "factor"), ("linear", "factor"), ("longrope", "short_factor")])
def test_missing_keys_are_listed(type_: str, lacking: str) -> None:
    first, second = both({"rope_scaling": {"rope_type": type_}})
    assert lacking in first.faults[0]
    assert lacking in second.faults[0]


def test_rope_scaling_wins_over_rope_parameters() -> None:
    first, _ = both({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": YARN})
    assert first.parameters["rope_type"] == "linear"
    assert "rope_parameters is dropped" in first.notes[0]


@pytest.mark.parametrize("theta", [None, "1e4", True, [], float("inf"), 0, -1.0])
def test_a_theta_that_is_no_positive_number_keeps_the_model_from_being_built(theta: object) -> None:
    first, second = both({"rope_theta": theta})
    assert first.later_faults
    assert second.later_faults


@pytest.mark.parametrize("factor", [None, "4.0", True, {}])
def test_a_factor_that_is_no_number_is_an_error_though_it_is_only_logged(factor: object) -> None:
    first, _ = both({"rope_scaling": {"type": "linear", "factor": factor}})
    assert "factor" in first.later_faults[0]


def test_rotary_emb_base_is_ignored_by_a_llama_and_read_by_gpt_neox() -> None:
    first, _ = both({"rotary_emb_base": 5000})
    assert first.notes == ["rotary_emb_base is ignored; rope_theta stays 10000.0"]
    neox, _ = both({"rotary_emb_base": 5000, "rotary_pct": 0.5}, "gpt_neox")
    assert neox.parameters == {"rope_theta": 5000, "partial_rotary_factor": 0.5, "rope_type": "default"}


def test_rotary_emb_fraction_is_applied_by_vllm() -> None:
    first, second = both({"rotary_emb_fraction": 0.5})
    assert "partial_rotary_factor" not in first.parameters
    assert second.parameters["partial_rotary_factor"] == 0.5


def test_nested_parameters_are_read_for_each_layer_type() -> None:
    nested = {"full_attention": {"rope_type": "linear", "factor": 2.0}, "sliding_attention": {"rope_theta": 1e4}}
    first, _ = both({"rope_parameters": nested, "rope_theta": 5e5})
    assert first.parameters["full_attention"]["rope_theta"] == 5e5
    assert first.parameters["sliding_attention"] == {"rope_theta": 1e4, "rope_type": "default"}


def test_a_scaling_that_is_no_object_is_refused() -> None:
    assert both({"rope_scaling": "linear"})[0].faults == ["rope_scaling is 'linear', an object is needed"]


def resolved(folder: Path, **changes: Any) -> Resolution:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4}
    config |= {"num_hidden_layers": 2, "vocab_size": 32, "intermediate_size": 64, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    return trace_model(str(folder))


def test_the_step_shows_before_and_after_and_a_silent_default(tmp_path: Path) -> None:
    found = resolved(tmp_path, rope_scaling={"type": "linear", "factor": 2.0})
    told = next(each for each in found.steps if each.step == "rope")
    assert told.details["before"] == {"rope_scaling": {"type": "linear", "factor": 2.0}}
    assert told.details["after"]["vllm"]["rope_type"] == "linear"
    assert "rope_theta is not told: 10000.0 is taken in silence" in told.why


def test_megatron_core_has_llama3_scaling_in_one_form_only(tmp_path: Path) -> None:
    usual = resolved(tmp_path, rope_scaling={**LLAMA3, "original_max_position_embeddings": 8192})
    assert usual.runtimes["megatron_core"].loads
    other = resolved(tmp_path, rope_scaling={**LLAMA3, "original_max_position_embeddings": 4096})
    assert "megatron-core fixes llama3 scaling" in other.runtimes["megatron_core"].reason


JUDGED: list[dict[str, Any]] = [
    {},
    {"rope_theta": 5e5},
    {"rope_theta": None},
    {"rope_scaling": {}},
    {"rope_scaling": "linear"},
    {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_scaling": {"type": "linear"}},
    {"rope_scaling": {"rope_type": "yarn"}},
    {"rope_scaling": YARN, "max_position_embeddings": 4096},
    {"rope_scaling": LLAMA3, "max_position_embeddings": 4096},
    {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
    {"rope_scaling": {"type": "dynamic", "factor": 3.0}, "rope_parameters": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "longrope", **FACTORS}},
    {"model_type": "phi3", "rope_scaling": {"type": "su", **FACTORS}},
    {"model_type": "phi3", "rope_scaling": {"type": "longrope", **FACTORS}, "original_max_position_embeddings": 32},
    {"model_type": "gpt_neox", "rotary_emb_base": 5000, "rotary_pct": 0.5},
    {"model_type": "mixtral"},
    {"head_dim": 7},
    {"head_dim": 3},
    {"num_hidden_layers": "2"},
    {"num_hidden_layers": None},
    {"hidden_size": 66},
    {"intermediate_size": None},
    {"hidden_act": None},
    {"rms_norm_eps": "1e-5"},
    {"eos_token_id": "</s>"},
    {"torch_dtype": "auto"},
    {"torch_dtype": "half"},
    {"model_type": "mistral", "layer_types": ["full_attention", "sliding_attention"]},
    {"model_type": "qwen3", "layer_types": ["full_attention"]},
    {"model_type": "nobody"},
    {"model_type": "nobody", "auto_map": {"AutoConfig": "a.B"}},
    {"auto_map": {"AutoConfig": "a.B"}},
    {"vocab_size": -1},
    {"tie_word_embeddings": "yes"},
    {"use_cache": "true"},
]


@pytest.mark.parametrize("changes", JUDGED, ids=json.dumps)
def test_transformers_itself_agrees(tmp_path: Path, changes: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers", minversion="5.24")
    from huggingface_hub.errors import StrictDataclassError

    found = resolved(tmp_path, **changes)
    verdict = found.runtimes["transformers"]
    built = verdict.loads or "cannot build the model" in verdict.reason or "would not load" in verdict.reason
    if not built:
        with pytest.raises((ValueError, KeyError, AttributeError, TypeError, StrictDataclassError)):
            transformers.AutoConfig.from_pretrained(tmp_path, trust_remote_code=False)
        return
    config = transformers.AutoConfig.from_pretrained(tmp_path, trust_remote_code=False)
    assert type(config).__name__ == verdict.config_class
    afters = [each.details["after"]["transformers"] for each in found.steps if each.step == "rope"]
    assert config.rope_parameters in afters
