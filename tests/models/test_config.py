"""Facts of config.json under all their names, and never of a wrong type."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.codec import encode
from hfbench.models.config import EXPERTS, HEADS, HIDDEN, LAYERS, VOCAB, read_config


def folder_with(folder: Path, content: object, name: str = "config.json") -> Path:
    (folder / name).write_text(json.dumps(content))
    return folder


def test_the_facts_of_a_usual_configuration(single: Path) -> None:
    config = read_config(single)
    assert (config.source, config.problems) == ("config.json", ())
    assert (config.model_type, config.architectures) == ("llama", ("LlamaForCausalLM",))
    assert (config.layers, config.hidden, config.heads, config.kv_heads, config.head_dim) == (1, 8, 2, 1, 4)
    assert (config.vocab, config.context, config.dtype, config.tied) == (16, 32, "bfloat16", False)


@pytest.mark.parametrize(
    ("content", "fact", "value"),
    [
        ({"n_layer": 3}, "layers", 3),
        ({"n_embd": 8, "n_head": 2}, "head_dim", 4),
        ({"n_head": 2}, "kv_heads", 2),
        ({"multi_query_group_num": 2, "num_attention_heads": 32}, "kv_heads", 2),
        ({"multi_query": True, "n_head": 16}, "kv_heads", 1),
        ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, "kv_heads", 8),
        ({"hidden_size": 8, "num_attention_heads": 2, "kv_lora_rank": 4}, "head_dim", None),
        ({"text_config": {"hidden_size": 9}, "hidden_size": 7}, "hidden", 9),
        ({"thinker_config": {"text_config": {"num_hidden_layers": 28}}}, "layers", 28),
        ({"dtype": "float16", "text_config": {"dtype": "bfloat16"}}, "dtype", "float16"),
        ({"torch_dtype": "torch.float32"}, "dtype", "float32"),
        ({"n_routed_experts": 256}, "experts", 256),
        ({"moe": {"num_experts": 8}}, "experts", 8),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization", "awq"),
        ({"quantization_config": {"bits": 4}}, "quantization", "4 bit"),
        ({"text_config": {"quantization_config": {"quant_method": "fp8"}}}, "quantization", "fp8"),
        ({"num_attention_heads": [8, 16]}, "heads", None),
    ],
)
def test_a_fact_is_found_under_each_of_its_names(tmp_path: Path, content: object, fact: str, value: object) -> None:
    config = read_config(folder_with(tmp_path, content))
    assert getattr(config, fact) == value
    assert config.problems == ()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"num_hidden_layers": "2"}, "config_type"),
        ({"num_hidden_layers": True}, "config_type"),
        ({"num_hidden_layers": 2.5}, "config_type"),
        ({"num_hidden_layers": {}}, "config_type"),
        ({"num_hidden_layers": -2}, "config_value"),
        ({"architectures": "LlamaForCausalLM"}, "config_type"),
        ({"architectures": [1]}, "config_type"),
        ({"model_type": 3}, "config_type"),
        ({"torch_dtype": ["x"]}, "config_type"),
        ({"tie_word_embeddings": "yes"}, "config_type"),
    ],
)
def test_a_value_of_a_wrong_type_is_an_error_and_no_fact(tmp_path: Path, content: object, code: str) -> None:
    config = read_config(folder_with(tmp_path, content))
    assert [(problem.code, problem.severity) for problem in config.problems] == [(code, "error")]
    assert (config.layers, config.model_type, config.dtype, config.tied) == (None, None, None, None)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[]", "config_not_object"),
        (b"", "config_json"),
        (b"{,}", "config_json"),
        (b"\xef\xbb\xbf{}", "config_bom"),
        (b'{"a":"\xe9"}', "config_encoding"),
        (b"version https://git-lfs.github.com/spec/v1\n", "lfs_pointer"),
        (b'{"rope_theta": NaN}', "config_nan"),
        (b'{"vocab_size": 1' + b"0" * 9000 + b"}", "config_value"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_faulty_file_is_a_problem_with_its_code(tmp_path: Path, raw: bytes, code: str) -> None:
    (tmp_path / "config.json").write_bytes(raw)
    config = read_config(tmp_path)
    assert config.problems[0].code == code
    assert config.source == "config.json"


@pytest.mark.timeout(10)
def test_a_config_that_is_missing_a_folder_or_a_fifo_is_told(tmp_path: Path) -> None:
    assert read_config(tmp_path).problems[0].code == "config_missing"
    (tmp_path / "config.json").mkdir()
    assert read_config(tmp_path).problems[0].code == "config_missing"
    (tmp_path / "config.json").rmdir()
    os.mkfifo(tmp_path / "config.json")
    assert read_config(tmp_path).problems[0].code == "not_regular"


def test_params_json_is_read_when_it_is_alone(tmp_path: Path) -> None:
    folder_with(tmp_path, {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2}, "params.json")
    config = read_config(tmp_path)
    assert (config.source, config.hidden, config.layers, config.kv_heads) == ("params.json", 64, 2, 2)


def test_the_side_file_of_modelopt_names_the_quantization(single: Path, edit_json: Callable[..., None]) -> None:
    folder_with(single, {"quantization": {"quant_algo": "NVFP4"}}, "hf_quant_config.json")
    assert read_config(single).quantization == "NVFP4"
    edit_json(single / "config.json", quantization_config={"quant_method": "modelopt"})
    assert read_config(single).quantization == "modelopt"


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
keys = st.sampled_from(["tie_word_embeddings", "quantization_config", "thinker_config"]) | st.sampled_from(
    [*LAYERS, *HIDDEN, *HEADS, *VOCAB, *EXPERTS, "text_config", "architectures", "model_type", "dtype", "moe"]
)


@settings(deadline=None)
@given(st.dictionaries(keys, json_values, max_size=6))
def test_no_value_of_any_type_raises(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    config = read_config(folder_with(tmp_path_factory.mktemp("config"), content))
    for fact in (config.layers, config.hidden, config.heads, config.vocab, config.experts):
        assert fact is None or (type(fact) is int and fact >= 0)
    assert config.tied in (None, True, False)


@pytest.mark.parametrize("levels", [201, 600, 900])
def test_what_is_nested_too_deeply_is_told_and_the_rest_is_read(tmp_path: Path, levels: int) -> None:
    (tmp_path / "config.json").write_text(f'{{"num_hidden_layers": 3, "x": {"[" * levels}1{"]" * levels}}}')
    config = read_config(tmp_path)
    assert [problem.code for problem in config.problems] == ["config_depth"]
    assert config.layers == 3
    assert json.dumps(encode(config)).count("[[") > 90


def test_what_is_nested_as_deeply_as_may_be_is_kept(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"x": {"[" * 199}1{"]" * 199}}}')
    config = read_config(tmp_path)
    assert config.problems == ()
    assert "1" in json.dumps(encode(config.raw))
