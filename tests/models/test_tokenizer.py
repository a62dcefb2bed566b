"""Tokenizer facts from every kind of file, and no exception from any of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.tokenizer import read_tokenizer

ADDED = [{"id": 0, "content": "<unk>", "special": True}, {"id": 3, "content": "<end>", "special": True}]
TOKENIZER = {"added_tokens": ADDED, "model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1, "b": 2}, "merges": ["a b"]}}


def write(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content) if isinstance(content, bytes) else path.write_text(json.dumps(content))
    return folder


def test_the_facts_of_a_usual_tokenizer(tmp_path: Path) -> None:
    config = {
        "tokenizer_class": "GPT2Tokenizer",
        "eos_token": {"content": "<end>"},
        "unk_token": "<unk>",
        "bos_token": None,
        "pad_token": "<not there>",
        "model_max_length": 8192,
        "chat_template": "{{ messages }}",
    }
    facts = read_tokenizer(write(tmp_path, tokenizer__json=TOKENIZER, tokenizer_config__json=config))
    assert (facts.tokenizer_class, facts.model, facts.vocab_size, facts.highest_id) == ("GPT2Tokenizer", "BPE", 4, 3)
    assert {role: token.id for role, token in facts.special_tokens.items()} == {
        "eos_token": 3,
        "unk_token": 0,
        "pad_token": None,
    }
    assert (facts.model_max_length, facts.added_tokens, facts.problems) == (8192, 2, ())
    assert [(each.source, each.characters) for each in facts.chat_templates] == [("tokenizer_config.json", 14)]


def test_templates_are_found_in_all_their_places(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "x"}, {"name": "tool_use", "template": "yy"}, {"name": "broken"}, 7]
    write(tmp_path, tokenizer_config__json={"chat_template": named}, chat_template__jinja=b"\xffzzz")
    found = [(each.name, each.source) for each in read_tokenizer(tmp_path).chat_templates]
    assert found == [
        ("default", "tokenizer_config.json"),
        ("tool_use", "tokenizer_config.json"),
        ("default", "chat_template.jinja"),
    ]


def test_a_limit_that_means_none_is_none(tmp_path: Path) -> None:
    assert read_tokenizer(write(tmp_path, tokenizer_config__json={"model_max_length": 1e30})).model_max_length is None


def piece(text: str) -> bytes:
    inner = b"\x0a" + bytes([len(text)]) + text.encode()
    return b"\x0a" + bytes([len(inner)]) + inner


@pytest.mark.parametrize(
    ("name", "content", "model", "size"),
    [
        ("tokenizer.model", b"".join(map(piece, ("<unk>", "a", "b"))) + b"\x12\x00", "sentencepiece", 3),
        (
            "tokenizer.model",
            b"".join(base64.b64encode(bytes([n])) + b" %d\n" % n for n in range(256)),
            "tiktoken",
            256,
        ),
        ("vocab.json", b'{"a": 0, "b": 7}', "BPE", 2),
        ("vocab.txt", b"[PAD]\na\nb\n", "WordPiece", 3),
        ("tekken.json", b'{"config": {"default_vocab_size": 131072}, "vocab": []}', "tekken", 131072),
        ("tokenizer.json", b'{"model": {"type": "Unigram", "vocab": [["a", -1.0], ["b", -2.0]]}}', "Unigram", 2),
    ],
)
def test_tokens_are_counted_in_every_kind_of_file(
    tmp_path: Path, name: str, content: bytes, model: str, size: int
) -> None:
    (tmp_path / name).write_bytes(content)
    facts = read_tokenizer(tmp_path)
    assert (facts.model, facts.vocab_size, facts.files, facts.problems) == (model, size, (name,), ())


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("tokenizer.json", b"{", "tokenizer_json"),
        ("tokenizer.json", b"version https://git-lfs.github.com/spec/v1\n", "lfs_pointer"),
        ("tokenizer_config.json", b"[]", "tokenizer_json"),
        ("tokenizer.model", b"\x0a\xff\xff", "tokenizer_model"),
        (
            "tokenizer.json",
            b'{"added_tokens": [{"id": 1, "content": "a"}, {"id": 1, "content": "b"}]}',
            "tokenizer_duplicate_id",
        ),
    ],
)
def test_a_faulty_file_is_a_problem(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert [problem.code for problem in read_tokenizer(tmp_path).problems] == [code]


@pytest.mark.parametrize(
    "content",
    [
        {"model": [], "added_tokens": {}},
        {"model": {"vocab": {"a": "x", "b": -1, "c": None}, "type": 3}, "added_tokens": [3, {}, {"id": "1"}]},
        {"model": {"vocab": 5}},
    ],
)
def test_values_of_a_wrong_type_count_as_absent(tmp_path: Path, content: Any) -> None:
    facts = read_tokenizer(write(tmp_path, tokenizer__json=content))
    assert (facts.vocab_size, facts.problems) == (0, ())


def test_special_tokens_of_a_wrong_type_are_left_out(tmp_path: Path) -> None:
    roles = {"eos_token": 3, "bos_token": {"content": 4}, "unk_token": ["x"], "added_tokens_decoder": {"x": 1, "²": {}}}
    assert read_tokenizer(write(tmp_path, tokenizer_config__json=roles)).special_tokens == {}


def test_no_tokenizer_is_no_problem(single: Path) -> None:
    facts = read_tokenizer(single)
    assert (facts.files, facts.vocab_size, facts.problems) == ((), None, ())
