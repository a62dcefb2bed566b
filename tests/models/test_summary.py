"""One record of a model: honest counts, and problems beside facts instead of exceptions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.codec import decode, encode
from hfbench.models.facts import DtypeShare, ModelSummary
from hfbench.models.reference import NotFound
from hfbench.models.summary import summarise


def test_the_facts_of_a_whole_model(sharded: Path) -> None:
    summary = summarise(sharded)
    assert (summary.model, summary.source, summary.format) == ("sharded", "local", "safetensors-sharded")
    assert (summary.files, summary.shards, summary.tensors) == (4, 2, 4)
    assert (summary.parameters, summary.weight_bytes) == (128 + 64 + 8 + 128, 672)
    assert list(summary.dtypes.items()) == [
        ("BF16", DtypeShare(tensors=3, elements=320, bytes=640)),
        ("F32", DtypeShare(tensors=1, elements=8, bytes=32)),
    ]
    assert summary.disk_bytes == sum(each.stat().st_size for each in sharded.iterdir())
    assert (summary.architecture, summary.model_type, summary.layers) == ("LlamaForCausalLM", "llama", 1)
    assert summary.biggest[0].name == "model.embed_tokens.weight"
    assert (summary.problems, summary.broken) == ((), False)


def test_a_summary_survives_json(sharded: Path) -> None:
    summary = summarise(sharded)
    assert decode(ModelSummary, json.loads(json.dumps(encode(summary)))) == summary


def test_a_cached_model_tells_its_commit_and_its_real_sizes(cache: Path) -> None:
    summary = summarise("org/tiny", cache_dir=cache)
    assert (summary.model, summary.source, summary.commit) == ("org/tiny", "cache", "1" * 40)
    assert summary.disk_bytes > summary.weight_bytes == 672


def test_what_is_broken_is_listed_errors_first(sharded: Path, edit_json: Callable[..., None]) -> None:
    edit_json(sharded / "model.safetensors.index.json", metadata={"total_size": "x"})
    (sharded / "model-00001-of-00002.safetensors").write_bytes(b"")
    (sharded / "tokenizer.json").symlink_to("gone")
    summary = summarise(sharded)
    assert [problem.code for problem in summary.problems] == ["st_too_small", "broken_symlink", "index_total_size"]
    assert summary.broken
    assert summary.tensors == 2


def test_weights_alone_and_a_configuration_alone_are_summarised(single: Path) -> None:
    (single / "config.json").rename(single / "aside")
    assert [problem.code for problem in summarise(single).problems] == ["config_missing"]
    (single / "aside").rename(single / "config.json")
    (single / "model.safetensors").unlink()
    assert [problem.code for problem in summarise(single).problems] == ["weights_missing"]


def test_a_folder_without_a_model_is_not_found(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").write_bytes(b"x")
    with pytest.raises(NotFound, match=r"no config\.json and no weights; it holds 'cat.jpg'"):
        summarise(folder)


def test_reading_models_imports_nothing_heavy(fresh_modules: Callable[[str], set[str]]) -> None:
    loaded = fresh_modules(
        "hfbench.models.summary, hfbench.models.stream, hfbench.models.catalog, hfbench.models.patterns"
    )
    assert not loaded & {"torch", "transformers", "numpy", "textual", "safetensors", "huggingface_hub"}
    assert "hfbench.models.summary" not in fresh_modules("hfbench.actions.inspect")


@pytest.fixture
def fresh_modules(hfbench: object) -> Callable[[str], set[str]]:
    import subprocess

    def loaded(modules: str) -> set[str]:
        code = f"import sys, {modules}; print(*sys.modules)"
        return set(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        )

    return loaded
