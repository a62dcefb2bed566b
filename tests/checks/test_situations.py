"""What runtimes do in silence, or say so badly that nobody understands: each situation has a rule that names it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases_pickles import bin_only, called
from cases_target import Place, cached, from_cache, from_folder
from small_model import (
    CONFIG,
    TEMPLATE,
    TENSORS,
    Edit,
    added,
    all_of,
    config,
    fifo,
    gone,
    linked,
    make,
    put,
    sharded,
    stored,
    tokenizer,
    tokens,
    weights,
)

from hfbench.checks.run import check, report_on
from hfbench.checks.subject import Options, subject_of
from hfbench.errors import UsageError

ONE = weights({"a": ("BF16", [1])})
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 4976698672\n"
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
YARN = {"rope_type": "yarn", "factor": 2.0}


def scaled(**values: Any) -> Edit:
    return config(rope_scaling=values)


SITUATIONS: dict[str, tuple[Edit, str, str]] = {
    "params.json without consolidated weights": (put("params.json", {"dim": 8}), "HB158", "info"),
    "params.json and nothing else": (all_of(gone("config.json"), put("params.json", {"dim": 8})), "HB158", "error"),
    "consolidated weights, params.json and config.json": (
        all_of(put("params.json", {}), put("consolidated.safetensors", ONE)),
        "HB159",
        "warning",
    ),
    "consolidated weights without params.json": (
        all_of(gone("model.safetensors"), put("consolidated.safetensors", ONE)),
        "HB159",
        "warning",
    ),
    "no model_type": (config(drop="model_type"), "HB210", "error"),
    "a model_type nobody knows": (config(model_type="brandnew9000"), "HB211", "error"),
    "a model_type that vLLM alone knows": (config(model_type="kimi_k2"), "HB211", "warning"),
    "auto_map for a known type": (config(auto_map={"AutoConfig": "c.C"}), "HB700", "info"),
    "auto_map for an unknown type": (
        all_of(config(model_type="my", auto_map={"AutoConfig": "c.C"}), put("c.py", "")),
        "HB700",
        "warning",
    ),
    "auto_map to another repository": (
        config(model_type="my", auto_map={"AutoConfig": "o/r--c.C"}),
        "HB700",
        "warning",
    ),
    "no architectures": (config(drop="architectures"), "HB212", "warning"),
    "architectures as a text": (config(architectures="LlamaForCausalLM"), "HB207", "error"),
    "the rope type su": (scaled(type="su", short_factor=[1.0] * 2, long_factor=[1.0] * 2), "HB308", "info"),
    "mrope without its sections": (scaled(type="mrope"), "HB303", "error"),
    "type and rope_type that differ": (scaled(type="linear", rope_type="dynamic", factor=2.0), "HB302", "error"),
    "a rope type nobody knows": (scaled(rope_type="quantum"), "HB304", "error"),
    "no rope_theta": (config(drop="rope_theta"), "HB301", "warning"),
    "a null rope_theta": (config(rope_theta=None), "HB301", "error"),
    "rotary_emb_base on a Llama": (config(drop="rope_theta", rotary_emb_base=1_000_000), "HB310", "warning"),
    "rotary_emb_fraction on a Llama": (config(rotary_emb_fraction=0.5), "HB311", "info"),
    "rope_scaling and rope_parameters": (
        config(rope_scaling=YARN, rope_parameters={"rope_type": "default"}),
        "HB309",
        "warning",
    ),
    "yarn without a factor": (scaled(rope_type="yarn"), "HB305", "error"),
    "llama3 without its frequencies": (scaled(rope_type="llama3", factor=8.0), "HB305", "error"),
    "a null factor": (scaled(rope_type="yarn", factor=None), "HB306", "error"),
    "a factor in quotes": (scaled(rope_type="linear", factor="4.0"), "HB306", "error"),
    "an odd head_dim": (config(head_dim=3), "HB216", "error"),
    "quantization in a side file": (
        put("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}}),
        "HB234",
        "info",
    ),
    "a byte order mark": (put("config.json", b"\xef\xbb\xbf" + json.dumps(CONFIG).encode()), "HB201", "error"),
    "UTF-16": (put("config.json", json.dumps(CONFIG).encode("utf-16")), "HB202", "error"),
    "a comment": (put("config.json", "// c\n{}"), "HB203", "error"),
    "a comma too many": (put("config.json", '{"a": 1,}'), "HB203", "error"),
    "an empty configuration": (put("config.json", ""), "HB203", "error"),
    "a git-lfs pointer": (put("config.json", POINTER), "HB130", "error"),
    "a list as configuration": (put("config.json", []), "HB204", "error"),
    "NaN in the configuration": (config(rms_norm_eps=float("nan")), "HB205", "warning"),
    "a key that stands twice": (put("config.json", '{"a": 1, "a": 2}'), "HB206", "warning"),
    "layers in quotes": (config(num_hidden_layers="2"), "HB207", "error"),
    "null layers": (config(num_hidden_layers=None), "HB218", "error"),
    "negative layers": (config(num_hidden_layers=-2), "HB208", "error"),
    "key-value heads that do not divide": (config(num_attention_heads=4, num_key_value_heads=3), "HB214", "error"),
    "a class nobody has": (config(architectures=["NopeForCausalLM"]), "HB213", "error"),
    "bfloat as dtype": (config(torch_dtype="bfloat"), "HB217", "error"),
    "auto as dtype": (config(torch_dtype="auto"), "HB217", "error"),
    "a shard that is missing": (sharded(drop="model-00002-of-00002.safetensors"), "HB142", "error"),
    "shards without an index": (sharded(drop="model.safetensors.index.json"), "HB143", "warning"),
    "an index and one file": (all_of(sharded(), put("model.safetensors", weights(TENSORS))), "HB152", "warning"),
    "an index that leads above": (sharded(weight_map={"x": "../x.safetensors"}), "HB141", "error"),
    "consolidated weights far below": (put("sub/deep/consolidated.safetensors", ONE), "HB157", "warning"),
    "an index with the wrong shard": (
        sharded(weight_map={"lm_head.weight": "model-00001-of-00002.safetensors"}),
        "HB145",
        "error",
    ),
    "an index with a ghost": (sharded(weight_map={"ghost": "model-00001-of-00002.safetensors"}), "HB144", "error"),
    "a tensor in two shards": (
        all_of(sharded(), put("model-00002-of-00002.safetensors", weights(dict(list(TENSORS.items())[5:])))),
        "HB149",
        "error",
    ),
    "a wrong total": (sharded(metadata={"total_size": 1}), "HB147", "warning"),
    "more layers than there are": (config(num_hidden_layers=3), "HB220", "error"),
    "untied, and no head": (stored(drop="lm_head.weight"), "HB224", "error"),
    "a FIFO as weights": (fifo("model.safetensors"), "HB131", "error"),
    "a device as weights": (linked("model.safetensors", "/dev/zero"), "HB133", "error"),
    "weights that lead nowhere": (linked("model.safetensors", "../../blobs/gone"), "HB132", "error"),
    "only an adapter": (
        all_of(gone("model.safetensors"), put("adapter_model.safetensors", ONE)),
        "HB151",
        "error",
    ),
    "two tokens of one id": (
        put("tokenizer.json", tokenizer(16, [added(15, "<x>"), added(15, "<y>")])),
        "HB503",
        "error",
    ),
    "ids past the embedding": (put("tokenizer.json", tokenizer(20)), "HB504", "error"),
    "two sources of the template": (put("chat_template.jinja", TEMPLATE + "x"), "HB608", "warning"),
    "a tokenizer_class nobody has": (tokens(tokenizer_class="NopeTokenizer"), "HB511", "warning"),
    "a template that does not end": (tokens(chat_template=LOOPS), "HB602", "error"),
    "a pickle that runs commands": (bin_only(called("os", "system")), "HB710", "error"),
}


@pytest.mark.parametrize("case", SITUATIONS)
def test_a_situation_is_named_by_its_rule(case: str, tmp_path: Path) -> None:
    edit, id, severity = SITUATIONS[case]
    edit(make(tmp_path / "model"))
    found = [(each.id, each.severity) for each in report_on(subject_of(tmp_path / "model", options=Options())).findings]
    assert (id, severity) in found


PLACES: dict[str, tuple[Callable[[Path], Place], str]] = {
    "nothing of that name": (from_folder("./gone", lambda path: None), "HB801"),
    "an empty folder": (from_folder("empty", Path.mkdir), "HB802"),
    "a repository that is not cached": (from_cache("org/other"), "HB803"),
    "a cache filled by commit": (from_cache("org/tiny", lambda repo: (repo / "refs" / "main").unlink()), "HB804"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_reference_that_leads_nowhere_is_told_apart_from_others(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, id = PLACES[case]
    place = prepare(tmp_path)
    monkeypatch.chdir(place.cwd)
    assert [each.id for each in check(place.given, cache_dir=place.cache).findings] == [id]


def test_a_file_in_place_of_a_folder_is_answered_with_the_folder(tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    with pytest.raises(UsageError, match=f"Give the folder: {re.escape(str(folder))}"):
        check(str(folder / "config.json"))
    hub = cached(tmp_path)
    assert "org/tiny --cache-dir" in next(each.remedy for each in check(str(hub)).findings if each.id == "HB801")
