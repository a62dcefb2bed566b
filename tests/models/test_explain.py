"""Every key of a configuration is explained, and what its class fills in is what the class itself would say."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.codec import decode, encode
from hfbench.models.explain.classes import class_table
from hfbench.models.explain.explain import GENERATION, explain
from hfbench.models.explain.facts import Explained, ExplainedKey
from hfbench.models.explain.meanings import known_names, meaning_of, sections
from hfbench.models.explain.rows import json_text, leaves
from hfbench.models.explain.select import NoSuchKey, matching
from hfbench.models.json_text import DEEPEST
from hfbench.models.reference import resolve

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "torch_dtype": "bfloat16",
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
}


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., Explained]:
    """Explain a folder with this configuration and these other files."""

    def make(config: object = None, **files: object) -> Explained:
        folder = tmp_path / "m"
        folder.mkdir(exist_ok=True)
        (folder / "keep").touch()
        written = {"config.json": config, **{f"{name}.json": value for name, value in files.items()}}
        for name, value in written.items():
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value)
                (folder / name).write_text(text)
        return explain(resolve(str(folder)))

    return make


def one(explained: Explained, key: str, origin: str = "default", file: str = "config.json") -> ExplainedKey:
    found = [each for each in explained.keys if (each.key, each.origin, each.file) == (key, origin, file)]
    assert len(found) == 1, [each.key for each in explained.keys]
    return found[0]


# -- keys of the files --------------------------------------------------------


def test_a_key_is_told_with_its_value_its_meaning_and_where_it_stands(told: Any) -> None:
    found = told(LLAMA)
    assert (found.source, found.config_class, found.problems) == ("config.json", "LlamaConfig", ())
    assert found.runtime.startswith("transformers ")
    factor = one(found, "rope_scaling.factor", "file")
    assert (factor.value, factor.meaning) == (8.0, "How many times the context is stretched")
    assert [each.key for each in found.keys if each.origin == "file"][:2] == ["model_type", "architectures"]


def test_the_result_goes_through_json_and_back(told: Any) -> None:
    found = told(LLAMA, generation_config={"do_sample": True})
    assert decode(Explained, json.loads(json.dumps(encode(found)))) == found


@pytest.mark.parametrize(
    ("path", "file", "begins"),
    [
        (("type",), "", ""),
        (("rope_scaling", "type"), "", "The older name of rope_type"),
        (("text_config", "rope_parameters", "full_attention", "factor"), "", "How many times"),
        (("quantization_config", "config_groups", "group_0"), "", "A group of modules"),
        (("quantization_config", "config_groups", "group_0", "weights", "type"), "", "Kind of number"),
        (("quantization", "quantized_layers", "model.layers.0.mlp"), "", "A module by its name"),
        (("quantization", "quantized_layers", "model.layers.0.mlp", "quant_algo"), "", "ModelOpt's name"),
        (("bits",), "quantize_config.json", "Bits of each"),
        (("bits",), "config.json", ""),
        (("auto_map", "AutoModelForCausalLM"), "", "Class in the repository's own"),
        (("id2label", "0"), "", "One class"),
        (("temperature",), "generation_config.json", "Divisor of the logits"),
        (("temperature",), "config.json", "Divisor of the logits"),
        (("task_specific_params", "summarization"), "", "Generation settings for one"),
        (("task_specific_params", "summarization", "num_beams"), "", "Beams"),
        (("anything", "vocab_size"), "", "Rows of the token embedding"),
        (("nobody_knows_this",), "", ""),
    ],
)
def test_a_meaning_is_that_of_the_innermost_object(path: tuple[str, ...], file: str, begins: str) -> None:
    meaning = meaning_of(path, file)
    assert meaning.startswith(begins)
    assert bool(meaning) == bool(begins)


def test_meanings_are_one_sentence_of_bounded_length() -> None:
    for section in sections():
        for key, meaning in section.keys.items():
            assert len(meaning) <= 140, key
            assert not meaning.endswith("."), key
            assert meaning[0].isupper() or meaning[0].isdigit(), key
            assert meaning == meaning.strip(), key


COMMON = """
    AutoConfig activation_scheme architectures attention_bias attention_dropout auto_map bits bos_token_id
    config_groups dtype eos_token_id exclude_modules factor first_k_dense_replace fmt group_size head_dim hidden_act
    hidden_size hybrid_override_pattern ignore image_token_id initializer_range input_activations intermediate_size
    kv_cache_quant_algo kv_lora_rank layer_norm_epsilon layer_types linear_num_value_heads mamba_head_dim
    max_position_embeddings max_window_layers model_type modules_to_not_convert moe_intermediate_size mrope_section
    n_embd n_group n_head n_layer n_routed_experts n_shared_experts norm_topk_prob num_attention_heads num_experts
    num_experts_per_tok num_hidden_layers num_key_value_heads num_local_experts num_nextn_predict_layers
    original_max_position_embeddings pad_token_id partial_rotary_factor patch_size pretraining_tp q_lora_rank
    qk_nope_head_dim qk_rope_head_dim quant_algo quant_method quantization_config rms_norm_eps rope_scaling rope_theta
    rope_type routed_scaling_factor router_aux_loss_coef scoring_func sliding_window spatial_merge_size ssm_state_size
    text_config tie_word_embeddings topk_method torch_dtype transformers_version use_cache use_sliding_window
    v_head_dim vision_config vocab_size weight_block_size
"""


@pytest.mark.parametrize("name", COMMON.split())
def test_the_keys_that_most_configurations_have_are_explained(name: str) -> None:
    above = {
        "AutoConfig": "auto_map",
        "factor": "rope_scaling",
        "rope_type": "rope_scaling",
        "mrope_section": "rope_scaling",
    }
    inside = {"activation_scheme", "bits", "config_groups", "exclude_modules", "fmt", "group_size", "ignore"}
    inside |= {"input_activations", "kv_cache_quant_algo", "modules_to_not_convert", "quant_algo", "quant_method"}
    holder = above.get(name, "quantization_config" if name in inside | {"weight_block_size"} else "")
    assert meaning_of((holder, name) if holder else (name,))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not at hand")
def test_every_key_that_three_real_models_have_is_explained(tmp_path: Path) -> None:
    subprocess.run(["tar", "xzf", CORPUS / "configs.tar.gz", "-C", tmp_path], check=True)
    unexplained: dict[str, set[str]] = {}
    for folder in sorted(tmp_path.iterdir()):
        for each in explain(resolve(str(folder))).keys:
            if not each.meaning and each.origin == "file" and each.key != "...":
                unexplained.setdefault(each.key.rpartition(".")[2], set()).add(folder.name)
    common = {key: models for key, models in unexplained.items() if len(models) >= 3 and not key.isdigit()}
    assert set(common) <= {"embedding_cls"}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("[1, 2]", "the root is a list"),
        ("null", "the root is null"),
        ("", "the file is empty"),
        ("{" + '"a":{' * 10_000 + "}" * 10_001, "nested too deeply"),
        ('{"a": 1,}', "a comma before"),
    ],
)
def test_what_is_no_object_has_no_keys_and_says_why(told: Any, config: str, says: str) -> None:
    found = told(config)
    assert found.broken
    assert says in found.problems[0].found
    assert not [each for each in found.keys if each.file == "config.json"]


def test_a_configuration_nested_beyond_the_bound_is_told_down_to_it(told: Any) -> None:
    deep: Any = "bottom"
    for _ in range(DEEPEST + 60):
        deep = {"x": deep}
    found = told({"deep": deep})
    assert [each.key.count(".") for each in found.keys if each.origin == "file"] == [DEEPEST - 1]
    assert found.broken


def test_a_value_of_a_megabyte_is_kept_whole(told: Any) -> None:
    found = told({"model_type": "llama", "big": "x" * 2**20})
    assert len(one(found, "big", "file").value) == 2**20


def test_odd_numbers_and_names_are_kept_and_told(told: Any) -> None:
    found = told('{"a": NaN, "a": -Infinity, "b\\u001b[31m": 1e400, "c": ' + "9" * 5000 + "}")
    assert {each.found.partition(";")[0] for each in found.problems} >= {"the key 'a' stands twice"}
    assert one(found, "a", "file").value == -math.inf
    assert one(found, "b\x1b[31m", "file").value == math.inf
    json.dumps(encode(found), allow_nan=False)


def test_more_values_than_are_told_of_one_file_are_counted(told: Any) -> None:
    found = told({str(number): number for number in range(5_007)})
    rows = [each for each in found.keys if each.origin == "file"]
    assert (len(rows), rows[-1].value) == (5_001, "7 values beyond the first 5,000, not shown")


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=30,
    )
)
def test_the_leaves_of_any_object_are_all_of_it(value: Any) -> None:
    found = list(leaves({"root": value}))
    assert len({path for path, _ in found}) == len(found)
    for path, leaf in found:
        at: Any = {"root": value}
        for part in path:
            at = at[int(part)] if isinstance(at, list) else at[part]
        assert at is leaf
        json_text(leaf)


# -- what is filled in --------------------------------------------------------


def test_a_default_is_told_with_its_class_and_version(told: Any) -> None:
    mlp = one(told(LLAMA), "mlp_bias")
    assert (mlp.value, mlp.by) == (False, f"default of LlamaConfig, {class_table().title}")


def test_a_default_is_worked_out_from_other_keys(told: Any) -> None:
    found = told(LLAMA)
    head = one(found, "head_dim")
    assert (head.value, head.how) == (16, "hidden_size // num_attention_heads")
    assert one(found, "num_key_value_heads").value == 4


def test_rotary_parameters_that_no_key_gives_are_filled_in(told: Any) -> None:
    found = told(LLAMA)
    assert one(found, "rope_parameters.rope_theta").value == 10_000.0
    context = one(found, "rope_parameters.original_max_position_embeddings")
    assert (context.value, context.how) == (2048, "")
    assert not [each for each in found.keys if each.key == "rope_parameters.factor"]
    named = told({**LLAMA, "max_position_embeddings": 512, "rope_theta": 5e5})
    assert one(named, "rope_parameters.original_max_position_embeddings").how == "max_position_embeddings"
    assert not [each for each in named.keys if each.key == "rope_parameters.rope_theta"]


def test_a_key_under_another_name_is_not_filled_in_again(told: Any) -> None:
    keys = {each.key for each in told({"model_type": "gpt2", "hidden_size": 8, "n_layer": 2}).keys}
    assert not {"n_embd", "dtype"} & (keys - {"hidden_size", "n_layer"}) - {"dtype"}
    assert "n_head" in keys
    assert not [each for each in told(LLAMA).keys if each.key == "dtype"]


def test_a_value_that_the_class_replaces_is_told_with_what_it_becomes(told: Any) -> None:
    found = told({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False})
    window = one(found, "sliding_window", "file")
    assert (window.value, window.becomes, window.by) == (4096, "null", "Qwen2Config")
    assert "use_sliding_window" in window.how
    kept = told({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True})
    assert one(kept, "sliding_window", "file").becomes == ""


def test_nested_configurations_have_defaults_of_their_own(told: Any) -> None:
    found = told({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 64}})
    assert one(found, "text_config.num_hidden_layers").by.startswith("default of LlamaConfig")
    vision = one(found, "vision_config")
    assert vision.how.startswith("every default of ")
    assert meaning_of(("vision_config",)) == vision.meaning


def test_layers_by_the_million_are_not_listed(told: Any) -> None:
    found = told({"model_type": "qwen2", "num_hidden_layers": 10**9})
    assert not one(found, "layer_types").known


@pytest.mark.parametrize(
    ("config", "note"),
    [
        ({"model_type": "of_tomorrow"}, "model_type 'of_tomorrow' is not one that transformers"),
        ({"hidden_size": 8}, "no model_type"),
        ({"model_type": ["llama"]}, "no model_type"),
        ({"model_type": "mine", "auto_map": {"AutoConfig": "a.B"}}, "the repository's own code decides"),
    ],
)
def test_a_class_that_is_not_known_is_said_to_be_so(told: Any, config: object, note: str) -> None:
    found = told(config)
    assert found.config_class is None
    assert note in found.notes[0]
    assert not [each for each in found.keys if each.origin == "default"]


def test_mistrals_own_file_has_no_class(told: Any) -> None:
    found = told(None, params={"dim": 64, "n_layers": 2})
    assert (found.source, found.config_class) == ("params.json", None)
    assert one(found, "dim", "file", "params.json").meaning.startswith("Width of the residual stream")


def test_generation_settings_are_told_and_filled_in(told: Any) -> None:
    found = told(LLAMA, generation_config={"do_sample": True, "eos_token_id": [1, 2]})
    assert one(found, "do_sample", "file", GENERATION).value is True
    assert one(found, "top_k", "default", GENERATION).value == 50
    assert not [each for each in found.keys if (each.key, each.origin) == ("do_sample", "default")]


def test_a_model_that_generates_nothing_has_no_generation_settings(told: Any) -> None:
    assert not [each for each in told({"model_type": "bert"}).keys if each.file == GENERATION]
    assert [each for each in told(LLAMA).keys if each.file == GENERATION]


@pytest.mark.parametrize("text", ["[]", "{", '{"a": ' + "[" * 400 + "]" * 400 + "}"])
def test_a_broken_file_beside_is_a_problem_and_the_rest_is_told(told: Any, text: str) -> None:
    found = told(LLAMA, generation_config=text, hf_quant_config=text)
    assert {each.where for each in found.problems} >= {GENERATION, "hf_quant_config.json"}
    assert one(found, "hidden_size", "file").value == 64


def test_a_fifo_in_place_of_a_configuration_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    os.mkfifo(tmp_path / GENERATION)
    found = explain(resolve(str(tmp_path)))
    assert [each.code for each in found.problems] == ["not_regular", "not_regular"]


def test_explaining_a_usual_model_again_is_quick(told: Any) -> None:
    told(LLAMA)
    begun = time.process_time()
    for _ in range(5):
        told(LLAMA)
    assert time.process_time() - begun < 2


# -- one key ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("hidden_size", ["hidden_size"]),
        ("rope_scaling.factor", ["rope_scaling.factor"]),
        ("factor", ["rope_scaling.factor"]),
        ("rope_scaling", ["rope_scaling.rope_type", "rope_scaling.factor"]),
        ("num_*_layers", ["num_hidden_layers"]),
        ("mlp_bias", ["mlp_bias"]),
    ],
)
def test_a_word_means_a_path_a_last_name_or_all_below_an_object(told: Any, word: str, found: list[str]) -> None:
    assert [each.key for each in matching(told(LLAMA).keys, word)] == found


def test_a_word_that_means_nothing_offers_what_is_alike_or_what_it_would_mean(told: Any) -> None:
    keys = told(LLAMA).keys
    with pytest.raises(NoSuchKey, match="Did you mean 'hidden_size'"):
        matching(keys, "hiden_size")
    with pytest.raises(NoSuchKey, match="which means: Width of the compressed latent"):
        matching(keys, "kv_lora_rank")
    assert "kv_lora_rank" in known_names()
