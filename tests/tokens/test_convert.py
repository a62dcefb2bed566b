"""Tokenizers in older files: converted by transformers, or the reason why not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import byte_level

from hfbench.errors import HfbenchError, MissingError
from hfbench.tokens import convert
from hfbench.tokens.tokenizer import Tokenizer, tokenized


def gpt2(folder: Path, **config: Any) -> Path:
    """A folder as GPT-2's, without its tokenizer.json."""
    folder.mkdir()
    model = byte_level()["model"]
    (folder / "vocab.json").write_text(json.dumps({**model["vocab"], "<|endoftext|>": len(model["vocab"])}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in model["merges"]))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", **config}))
    return folder


def why_not(folder: Path) -> HfbenchError:
    tokenizer = Tokenizer(folder)
    with pytest.raises(HfbenchError) as caught:
        tokenizer.encode("x")
    tokenizer.close()
    return caught.value


@pytest.mark.slow
def test_a_vocabulary_with_merges_is_converted_and_keeps_its_ids(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    folder = gpt2(tmp_path / "model", vocab_file=str(outside), tokenizer_file=str(outside), auto_map={})
    found, source = tokenized(folder, "hello café")
    vocab = byte_level()["model"]["vocab"]
    assert list(found.ids) == [vocab["hello"], vocab["ĠcafÃ©"]]
    assert source.startswith("vocab.json and merges.txt, converted by transformers ")


@pytest.mark.slow
def test_code_of_the_model_is_never_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    canary = tmp_path / "ran"
    folder = gpt2(
        tmp_path / "model",
        tokenizer_class="OwnTokenizer",
        auto_map={"AutoTokenizer": [None, "tokenization_own.OwnTokenizer"]},
    )
    (folder / "tokenization_own.py").write_text(f"open({str(canary)!r}, 'w')\nclass OwnTokenizer: pass\n")
    error = why_not(folder)
    assert "its tokenizer is code of the model (tokenization_own.OwnTokenizer), which is never run" in str(error)
    assert not canary.exists()


@pytest.mark.slow
def test_what_transformers_says_is_told_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = gpt2(tmp_path / "model")
    (folder / "merges.txt").write_text("#version: 0.2\na zz\n")
    error = why_not(folder)
    assert str(error).startswith("vocab.json and merges.txt: there is no tokenizer.json, and it cannot be converted: ")
    assert str(tmp_path) not in error.found
    assert "/hfbench-tokenizer-" not in error.found


@pytest.mark.parametrize(
    ("content", "package"),
    [(b"\x0a\x03\x0a\x01a" * 3, "sentencepiece"), (base64.b64encode(b"a") + b" 0\n", "tiktoken")],
    ids=["sentencepiece", "tiktoken"],
)
def test_a_package_that_transformers_would_need_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, package: str
) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    monkeypatch.setattr(convert, "_installed", lambda name: name == "transformers")
    error = why_not(tmp_path)
    assert isinstance(error, MissingError)
    assert f"converting tokenizer.model needs {package}" in error.found
    assert "pip install" in error.remedy


def test_without_transformers_the_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = gpt2(tmp_path / "model")
    monkeypatch.setattr(convert, "_installed", lambda name: False)
    assert "converting vocab.json and merges.txt needs transformers" in str(why_not(folder))


def test_files_that_hold_no_vocabulary_say_so(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    assert "is neither a sentencepiece model nor a tiktoken file" in str(why_not(tmp_path))
    (tmp_path / "tokenizer.model").unlink()
    assert "there are no tokenizer files" in str(why_not(tmp_path))


def test_a_link_out_of_the_folder_is_not_copied(tmp_path: Path) -> None:
    folder = gpt2(tmp_path / "model")
    (folder / "merges.txt").rename(tmp_path / "merges.txt")
    (folder / "merges.txt").symlink_to(tmp_path / "merges.txt")
    assert "outside the model's folder" in str(why_not(folder))
