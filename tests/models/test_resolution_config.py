"""Resolution: format, configuration class, repository code, fields and model class."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.trace import Step
from hfbench.models.runtimes import RUNTIMES, shipped
from hfbench.text import printable

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 32,
    "rope_theta": 10000.0,
}

Resolve = Callable[..., Resolution]


@pytest.fixture
def resolve(tmp_path: Path) -> Resolve:
    """Resolve a folder of a Llama's configuration with some keys changed; None removes a key."""

    def made(files: dict[str, str] | None = None, **changes: Any) -> Resolution:
        config = {key: value for key, value in {**LLAMA, **changes}.items() if value != "REMOVED"}
        (tmp_path / "config.json").write_text(json.dumps(config))
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return trace_model(str(tmp_path))

    return made


def step(found: Resolution, name: str) -> Step:
    return next(each for each in found.steps if each.step == name)


def test_a_folder_of_only_a_configuration_is_judged_on_it(resolve: Resolve) -> None:
    verdict = resolve().runtimes["transformers"]
    assert verdict.loads
    assert (verdict.config_class, verdict.model_class) == ("LlamaConfig", "LlamaForCausalLM")
    assert verdict.judged == "configuration"
    assert verdict.files == ()
    assert "no weights" in verdict.reason
    assert verdict.version


def test_every_step_of_the_trace_is_told_in_order(resolve: Resolve) -> None:
    assert [each.step for each in resolve().steps] == [
        "local path",
        "cache",
        "hub",
        "config format",
        "model type",
        "remote code",
        "fields",
        "rope",
        "architectures",
        "quantization",
        "dtype",
        "context",
        "tokenizer",
        "weights",
    ]


def test_an_unknown_model_type_is_named_and_one_is_suggested(resolve: Resolve) -> None:
    found = resolve(model_type="llamma")
    for runtime in ("transformers", "vllm"):
        assert not found.runtimes[runtime].loads
        assert "unknown model_type 'llamma'" in found.runtimes[runtime].reason
        assert "'llama'" in found.runtimes[runtime].reason


def test_no_model_type_is_told_and_suggested_from_the_architecture(resolve: Resolve) -> None:
    reason = resolve(model_type="REMOVED").runtimes["transformers"].reason
    assert "no model_type" in reason
    assert "'llama'" in reason


def test_a_type_of_vllms_registry_loads_there_and_not_in_transformers(resolve: Resolve) -> None:
    found = resolve(model_type="kimi_k2", architectures=["DeepseekV3ForCausalLM"])
    assert not found.runtimes["transformers"].loads
    assert found.runtimes["vllm"].loads
    assert found.runtimes["vllm"].config_class == "DeepseekV3Config"


def test_vllm_does_not_know_types_newer_than_the_transformers_it_pins(resolve: Resolve) -> None:
    found = resolve(model_type="internlm3", architectures=["InternLM3ForCausalLM"])
    assert found.runtimes["transformers"].loads
    assert "transformers 5.20.0 at most" in found.runtimes["vllm"].reason


def test_vllm_fills_a_missing_type_in_from_some_architectures(resolve: Resolve) -> None:
    found = resolve(model_type="REMOVED", architectures=["LongcatFlashForCausalLM"])
    assert found.runtimes["vllm"].config_class == "LongcatFlashConfig"
    assert not found.runtimes["transformers"].loads


def test_mistral_with_layer_types_is_read_as_ministral(resolve: Resolve) -> None:
    found = resolve(model_type="mistral", layer_types=["full_attention", "sliding_attention"])
    assert found.runtimes["transformers"].config_class == "MinistralConfig"
    assert "ministral" in step(found, "model type").found


@pytest.mark.parametrize("value", [["llama"], {"a": 1}, 7, "", None, True])
def test_a_model_type_that_is_no_name_is_refused_and_not_a_crash(resolve: Resolve, value: object) -> None:
    assert not resolve(model_type=value).runtimes["transformers"].loads


CODE = {
    "configuration_mine.py": "from .helper import thing\nimport torch\n",
    "helper.py": "raise SystemExit('ran')\n",
    "modeling_mine.py": "from .configuration_mine import MineConfig\nfrom . import extra\n",
}
AUTO_MAP = {"AutoConfig": "configuration_mine.MineConfig", "AutoModelForCausalLM": "modeling_mine.MineModel"}


def test_remote_code_that_is_needed_names_every_file_that_would_run(resolve: Resolve) -> None:
    found = resolve(CODE, model_type="mine", architectures=["MineModel"], auto_map=AUTO_MAP)
    told = step(found, "remote code")
    assert told.details["files"] == ["configuration_mine.py", "helper.py", "modeling_mine.py"]
    assert told.details["missing"] == ["extra.py"]
    for runtime in ("transformers", "vllm"):
        assert not found.runtimes[runtime].loads
        assert "needs remote code" in found.runtimes[runtime].reason
    assert "--trust-remote-code" in found.runtimes["vllm"].reason


def test_remote_code_beside_a_known_type_is_present_and_not_needed(resolve: Resolve) -> None:
    found = resolve(CODE, auto_map=AUTO_MAP)
    assert found.runtimes["transformers"].loads
    assert "not needed" in step(found, "remote code").why


def test_remote_code_of_another_repository_is_named(resolve: Resolve) -> None:
    found = resolve(model_type="mine", auto_map={"AutoConfig": "org/other--configuration_mine.MineConfig"})
    assert "comes from the repository 'org/other'" in found.runtimes["transformers"].reason
    assert step(found, "remote code").details["repositories"] == ["org/other"]


@pytest.mark.parametrize("reference", ["no_class", "../../etc/passwd.X", "a.b.c", 7, "", "a b.C", ["x"]])
def test_an_auto_map_that_names_no_class_is_told(resolve: Resolve, reference: object) -> None:
    found = resolve(model_type="mine", auto_map={"AutoConfig": reference})
    assert not found.runtimes["transformers"].loads


def test_tokenizer_code_is_among_the_files_that_would_run(resolve: Resolve) -> None:
    files = {
        "tokenizer_config.json": json.dumps({"auto_map": {"AutoTokenizer": ["tok_slow.T", "tok_fast.T"]}}),
        "tok_fast.py": "",
    }
    found = resolve(files)
    assert step(found, "remote code").details["files"] == ["tok_fast.py"]
    assert "remote code" in step(found, "tokenizer").found


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_hidden_layers": "2"}, "num_hidden_layers is '2'"),
        ({"num_hidden_layers": None}, "num_hidden_layers is null"),
        ({"num_hidden_layers": True}, "num_hidden_layers is true"),
        ({"hidden_size": 65}, "not a multiple of the 4"),
        ({"num_attention_heads": 0}, "0 attention heads"),
        ({"torch_dtype": "bfloat"}, "torch_dtype is 'bfloat'"),
        ({"torch_dtype": "auto"}, "torch_dtype is 'auto'"),
        ({"head_dim": 7}, "head_dim is 7"),
        ({"text_config": "x"}, "text_config is 'x'"),
        ({"layer_types": ["full_attention", "bogus"]}, "'bogus'"),
        ({"layer_types": ["full_attention"]}, "lists 1"),
    ],
)
def test_what_the_configuration_class_refuses_keeps_both_from_loading(
    resolve: Resolve, changes: dict[str, Any], told: str
) -> None:
    found = resolve(**changes)
    for runtime in ("transformers", "vllm"):
        assert not found.runtimes[runtime].loads
        assert told in found.runtimes[runtime].reason


@pytest.mark.parametrize("text", ["\ufeff{}", "[]", "{,}", "", "null", '{"a": 1,}', "// x\n{}"])
def test_a_configuration_that_is_no_json_object_says_what_is_wrong(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "other").touch()
    found = trace_model(str(tmp_path))
    assert all(not verdict.loads for verdict in found.runtimes.values())
    assert found.runtimes["vllm"].reason.startswith("config.json: ")
    assert step(found, "config format").state == "error"


def test_missing_architectures_lead_to_the_base_class(resolve: Resolve) -> None:
    found = resolve(architectures="REMOVED")
    told = step(found, "architectures")
    assert told.state == "warning"
    assert "would be loaded as LlamaModel" in told.why
    assert "pooling" in told.why
    assert found.runtimes["transformers"].model_class == "LlamaModel"


def test_an_architecture_nobody_has_blocks_vllm_when_there_are_weights(
    single: Path, edit_json: Callable[..., None]
) -> None:
    edit_json(single / "config.json", architectures=["NopeForCausalLM"])
    found = trace_model(str(single))
    assert "unknown architecture 'NopeForCausalLM'" in found.runtimes["vllm"].reason
    assert found.runtimes["transformers"].model_class == "LlamaForCausalLM"


@pytest.mark.parametrize(
    ("architecture", "told"),
    [
        ("QWenLMHeadModel", "was supported in vLLM until v0.23.0"),
        ("MllamaForConditionalGeneration", ""),
    ],
)
def test_architectures_vllm_gave_up_say_since_when(resolve: Resolve, architecture: str, told: str) -> None:
    verdict = resolve(architectures=[architecture]).runtimes["vllm"]
    assert verdict.loads, "the configuration alone still loads"
    if told:
        assert told in verdict.reason
        assert "would not load" in verdict.reason
    else:
        assert verdict.model_class == "TransformersForCausalLM"


def test_an_architecture_that_a_plugin_has_names_the_plugin(tmp_path: Path) -> None:
    names = {runtime: shipped(runtime) for runtime in RUNTIMES}
    vllm = replace(names["vllm"], plugins={"PlugForCausalLM": "https://example.org/plug"})
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "architectures": ["PlugForCausalLM"]}))
    verdict = trace_model(str(tmp_path), names={**names, "vllm": vllm}).runtimes["vllm"]
    assert "needs a vLLM plugin: https://example.org/plug" in verdict.reason


def test_a_classifier_is_made_from_the_generating_class(resolve: Resolve) -> None:
    assert resolve(architectures=["Qwen3ForSequenceClassification"], model_type="qwen3").runtimes["vllm"].model_class


def test_the_other_runtimes_are_judged_by_architecture(resolve: Resolve) -> None:
    found = resolve()
    assert found.runtimes["tensorrt_llm"].loads
    assert "Megatron-Bridge converts LlamaForCausalLM" in found.runtimes["megatron_core"].reason
    other = resolve(architectures=["WhisperForConditionalGeneration"], model_type="whisper")
    assert not other.runtimes["megatron_core"].loads


def test_mistrals_params_need_consolidated_weights(resolve: Resolve) -> None:
    found = resolve({"params.json": "{}"})
    assert "params.json is ignored: no consolidated" in step(found, "config format").why
    assert found.runtimes["vllm"].config_class == "LlamaConfig"


def test_mistrals_format_wins_in_vllm_and_not_in_transformers(
    single: Path, first: object, file_of: Callable[..., bytes]
) -> None:
    (single / "params.json").write_text(json.dumps({"dim": 8, "moe": {"num_experts": 2}}))
    (single / "consolidated.safetensors").write_bytes(file_of(first))
    found = trace_model(str(single))
    assert "vLLM uses the Mistral format here; transformers uses config.json" in step(found, "config format").why
    assert found.runtimes["vllm"].files == ("consolidated.safetensors",)
    assert found.runtimes["vllm"].model_class == "MixtralForCausalLM"
    assert found.runtimes["transformers"].files == ("model.safetensors",)


def test_consolidated_weights_without_params_split_the_formats(
    single: Path, first: object, file_of: Callable[..., bytes]
) -> None:
    (single / "consolidated.safetensors").write_bytes(file_of(first))
    assert step(trace_model(str(single)), "config format").state == "warning"


@pytest.mark.parametrize(
    ("config", "files", "source", "method"),
    [
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, {}, "config.json: quantization_config", "awq"),
        (
            {"compression_config": {"quant_method": "compressed_tensors"}},
            {},
            "config.json: compression_config",
            "compressed-tensors",
        ),
        (
            {},
            {"hf_quant_config.json": '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "nvfp4"}}'},
            "hf_quant_config.json",
            "modelopt_fp4",
        ),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            {"hf_quant_config.json": '{"quantization": {"quant_algo": "FP8"}}'},
            "config.json: quantization_config",
            "gptq",
        ),
    ],
)
def test_the_source_and_method_of_a_quantization_are_told(
    resolve: Resolve, config: dict[str, Any], files: dict[str, str], source: str, method: str
) -> None:
    told = step(resolve(files, **config), "quantization")
    assert (told.details["source"], told.details["method"]) == (source, method)


def test_quantization_that_a_runtime_does_not_know_is_told(resolve: Resolve) -> None:
    found = resolve(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    assert "does not know the quantization method 'bitsandbytes'" in found.runtimes["vllm"].reason
    unknown = resolve(
        {"hf_quant_config.json": '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "X"}}'}
    )
    assert step(unknown, "quantization").state == "error"


def test_dtype_and_context_say_where_they_come_from(resolve: Resolve) -> None:
    found = resolve(
        torch_dtype="float16", model_type="gemma2", architectures=["Gemma2ForCausalLM"], max_position_embeddings=4096
    )
    assert step(found, "dtype").found == "float16 (torch_dtype)"
    assert "--dtype float16 is refused" in step(found, "dtype").why
    assert step(found, "context").found == "4,096 tokens (max_position_embeddings 4,096)"


@pytest.mark.parametrize(
    ("scaling", "tokens"),
    [
        ({"type": "linear", "factor": 4.0}, "16,384"),
        ({"type": "yarn", "factor": 4.0}, "4,096"),
        ({"rope_type": "dynamic", "factor": 2.0}, "8,192"),
    ],
)
def test_only_linear_and_dynamic_scaling_multiply_the_context(
    resolve: Resolve, scaling: dict[str, Any], tokens: str
) -> None:
    found = resolve(max_position_embeddings=4096, rope_scaling=scaling)
    assert step(found, "context").found.startswith(f"{tokens} tokens")


def test_a_context_that_only_the_class_tells_is_its_default(resolve: Resolve) -> None:
    found = step(resolve(), "context").found
    assert found == "2,048 tokens (max_position_embeddings 2,048, the default of LlamaConfig)"


def test_a_context_that_nothing_tells_is_assumed(resolve: Resolve) -> None:
    assert "vLLM assumes 2,048" in step(resolve(model_type="brand_new"), "context").found


def test_a_hostile_configuration_ends_in_steps(resolve: Resolve) -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"text_config": deep, "rope_scaling": deep}
        if len(json.dumps(deep)) > 100_000:
            break
    found = resolve(
        text_config=deep,
        rope_scaling={"type": ["x"], "factor": {"a": 1}, "full_attention": {"rope_theta": "x"}},
        architectures=[7, None, "\u001b[2J"],
        auto_map={"AutoConfig": {"a": "b"}, "": None, "x": [[["y"]]]},
        quantization_config={"quant_method": {"x": 1}, "bits": []},
        max_position_embeddings=1e308,
        tie_word_embeddings=[],
        id2label={"x": 1},
        layer_types=[["x"], {}],
    )
    assert found.loads_nowhere
    assert all(text == printable(text) for each in found.steps for text in (each.found, each.why))
    json.dumps([verdict.told() for verdict in found.runtimes.values()])


KEY_NAMES = """
model_type architectures auto_map AutoConfig AutoModel rope_scaling rope_parameters rope_theta type rope_type factor
full_attention mrope_section text_config llm_config quantization_config quant_method producer quantization torch_dtype
dtype layer_types num_hidden_layers hidden_size num_attention_heads head_dim max_position_embeddings moe id2label
tie_word_embeddings speculators_config transformers_weights tokenizer_class partial_rotary_factor
original_max_position_embeddings
"""
KEYS = st.sampled_from(KEY_NAMES.split())
WORDS = st.sampled_from(
    [
        "llama",
        "phi3",
        "qwen2_vl",
        "kimi_k2",
        "gemma3",
        "yarn",
        "su",
        "mrope",
        "longrope",
        "telechat3-yarn",
        "awq",
        "x.Y",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=st.dictionaries(KEYS, VALUES, max_size=10), params=st.none() | st.dictionaries(KEYS, VALUES, max_size=3))
def test_no_configuration_whatever_raises(
    tmp_path: Path, config: dict[str, Any], params: dict[str, Any] | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if params is not None:
        (tmp_path / "params.json").write_text(json.dumps(params))
        (tmp_path / "consolidated.safetensors").write_bytes(b"")
    found = trace_model(str(tmp_path))
    assert len(found.runtimes) == 4
    assert all(text == printable(text) for each in found.steps for text in (each.found, each.why))
