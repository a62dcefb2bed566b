"""Tokenizers side by side: vocabularies, merges, added and special tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.diff.facts import KeyDiff
from hfbench.models.diff.files import TOKENIZER, FolderPair
from hfbench.models.diff.vocabularies import MOST_TOLD

BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}


def diff(tmp_path: Path, name: str, a: Any, b: Any) -> list[tuple[str, str, Any, Any]]:
    for side, content in (("a", a), ("b", b)):
        folder = tmp_path / side
        folder.mkdir()
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    pair = FolderPair(tmp_path / "a", tmp_path / "b")
    found: tuple[KeyDiff, ...] = pair.diff_files(TOKENIZER)
    assert pair.problems == []
    return [(each.key, each.change, each.a, each.b) for each in found]


def test_tokens_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    b = {**BPE, "vocab": {"a": 0, "b": 5, "new": 2}}
    assert diff(tmp_path, "tokenizer.json", {"model": BPE}, {"model": b}) == [
        ("model.vocab", "changed", "3 tokens", "3 tokens: 1 added, 1 removed, 1 with another id or score"),
        ("model.vocab[ab]", "removed", 2, None),
        ("model.vocab[new]", "added", None, 2),
        ("model.vocab[b]", "changed", 1, 5),
    ]


def test_a_vocabulary_that_is_another_one_hides_no_other_key(tmp_path: Path) -> None:
    a = {"model": {**BPE, "vocab": {f"a{n}": n for n in range(5000)}}, "truncation": None}
    b = {"model": {**BPE, "vocab": {f"b{n}": n for n in range(5000)}}, "truncation": {"max_length": 5}}
    found = diff(tmp_path, "tokenizer.json", a, b)
    assert found[0] == ("truncation", "changed", None, '{"max_length": 5}')
    assert found[1][3] == "5,000 tokens: 5,000 added, 5,000 removed"
    assert len(found) == 2 + 2 * MOST_TOLD


def test_merges_are_the_same_in_either_spelling(tmp_path: Path) -> None:
    b = {**BPE, "merges": [["a", "b"]]}
    assert diff(tmp_path, "tokenizer.json", {"model": BPE, "x": 1}, {"model": b, "x": 1}) == []


def test_merges_with_blanks_in_them_are_told_apart(tmp_path: Path) -> None:
    a, b = ({"model": {"merges": [pair]}} for pair in (["a b", "c"], ["a", "b c"]))
    assert diff(tmp_path, "tokenizer.json", a, b)[0] == (
        "model.merges",
        "changed",
        "1 merge",
        "1 merge: 1 added, 1 removed",
    )


def test_merges_tell_what_came_went_and_where_the_order_parts(tmp_path: Path) -> None:
    a, b = ({"model": {"merges": merges}} for merges in (["a b", "c d", "e f"], ["a b", "e f", "g h"]))
    assert diff(tmp_path, "tokenizer.json", a, b) == [
        ("model.merges", "changed", "3 merges", "3 merges: 1 added, 1 removed"),
        ("model.merges[1]", "changed", "'c d'", "'e f'"),
        ("model.merges[c d]", "removed", 1, None),
        ("model.merges[g h]", "added", None, 2),
    ]


def test_merges_in_another_order_are_another_tokenizer(tmp_path: Path) -> None:
    a, b = ({"model": {"merges": merges}} for merges in (["a b", "c d"], ["c d", "a b"]))
    assert diff(tmp_path, "tokenizer.json", a, b)[0][3] == "2 merges: in another order"


def test_unigram_scores_and_tekken_ranks_are_compared_by_token(tmp_path: Path) -> None:
    a, b = ({"model": {"vocab": [["a", -1.0], ["b", score]]}} for score in (-2.0, -3.0))
    assert diff(tmp_path, "tokenizer.json", a, b)[1] == ("model.vocab[b]", "changed", "1, score -2.0", "1, score -3.0")
    ranks = [{"vocab": [{"rank": rank, "token_bytes": "YQ=="}]} for rank in (1, 2)]
    (tmp_path / "tekken").mkdir()
    assert diff(tmp_path / "tekken", "tekken.json", *ranks)[1] == ("vocab[YQ==]", "changed", 1, 2)


@pytest.mark.parametrize(
    ("name", "a", "b", "told"),
    [
        ("vocab.txt", "a\nb\n", "a\nc\n", "2 tokens: 1 added, 1 removed"),
        ("vocab.txt", "a\r\nb\r\n", "b\r\na\r\n", "2 tokens: 2 with another id or score"),
        ("merges.txt", "#version: 0.2\na b\n", "#version: 0.2\na c\n", "1 merge: 1 added, 1 removed"),
        ("vocab.json", {"a": 1}, {"a": 2}, "1 token: 1 with another id or score"),
    ],
)
def test_files_of_older_tokenizers_are_compared_by_token(name: str, a: Any, b: Any, told: str, tmp_path: Path) -> None:
    assert diff(tmp_path, name, a, b)[0][3] == told


def test_line_ends_and_spelling_of_json_make_no_other_tokenizer(tmp_path: Path) -> None:
    assert diff(tmp_path, "vocab.txt", "a\nb\n", "a\r\nb\r\n") == []
    (tmp_path / "json").mkdir()
    assert diff(tmp_path / "json", "vocab.json", '{"\\u00e9": 1}', '{ "é": 1 }') == []


def test_added_and_special_tokens_are_told_by_content(tmp_path: Path) -> None:
    tokens = [{"id": 1, "content": "<s>", "special": True}]
    b = [{"id": 1, "content": "<s>", "special": False}, {"id": 2, "content": "<x>", "special": True}]
    assert diff(tmp_path, "tokenizer.json", {"added_tokens": tokens}, {"added_tokens": b}) == [
        ("added_tokens[<s>].special", "changed", True, False),
        ("added_tokens[<x>]", "added", None, '{"id": 2, "content": "<x>", "special": true}'),
    ]
    (tmp_path / "special").mkdir()
    maps = ({"eos_token": "</s>"}, {"eos_token": {"content": "</s>", "lstrip": False}})
    assert diff(tmp_path / "special", "special_tokens_map.json", *maps) == [
        ("eos_token", "changed", "</s>", '{"content": "</s>", "lstrip": false}')
    ]


@pytest.mark.parametrize(
    "odd",
    [{"vocab": 3}, {"vocab": [1]}, {"merges": [["a"]]}, {"merges": {"a": 1}}, {"vocab": {"a": [1]}}, "text", None],
)
def test_odd_content_is_compared_by_key_as_any_other(odd: Any, tmp_path: Path) -> None:
    assert diff(tmp_path, "tokenizer.json", {"model": odd}, {"model": BPE})
