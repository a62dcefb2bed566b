"""Texts cut by every kind of tokenizer: ids, pieces, bytes, special tokens, and what stops a bad one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_tokenizers import KINDS, added, byte_level, sentencepiece_bpe, unigram, whole, wordpiece, write

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.tokens.encoded import Encoded
from hfbench.tokens.tokenizer import MOST_TEXT, Tokenizer

Opened = Callable[[dict[str, Any] | bytes], Tokenizer]

HARD = "hello world 👩‍🚀 cafe\u0301 naïve\n\t漢字 \u202ex"


def cut(encoded: Encoded) -> list[str]:
    return [token.text for token in encoded]


def test_a_byte_level_text_is_cut_with_ids_pieces_and_bytes(opened: Opened) -> None:
    encoded = opened(byte_level()).encode("hello café <|im_end|><think>")
    ids = byte_level()["model"]["vocab"]
    assert [(t.id, t.piece, t.text, t.begin, t.end) for t in encoded][:2] == [
        (ids["hello"], "hello", "hello", 0, 5),
        (ids["ĠcafÃ©"], "ĠcafÃ©", " café", 5, 11),
    ]
    assert [(t.text, t.special, t.added) for t in encoded][3:] == [
        ("<|im_end|>", True, True),
        ("<think>", False, True),
    ]
    assert (len(encoded), encoded.characters, len(encoded.raw)) == (5, 28, 29)


def test_each_byte_of_an_emoji_that_was_cut_has_its_own_place(opened: Opened) -> None:
    encoded = opened(byte_level(words=())).encode("👩")
    assert [(t.text, t.begin, t.end) for t in encoded] == [
        ("\\xf0", 0, 1),
        ("\\x9f", 1, 2),
        ("\\x91", 2, 3),
        ("\\xa9", 3, 4),
    ]


@pytest.mark.parametrize("kind", ["byte-level", "unigram"])
def test_joined_tokens_are_the_text(opened: Opened, kind: str) -> None:
    encoded = opened(KINDS[kind]()).encode(HARD)
    assert b"".join(map(encoded.bytes_of, range(len(encoded)))) == HARD.encode()


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Tokenizer]]:
    pytest.importorskip("tokenizers")
    root = tmp_path_factory.mktemp("every")
    made = {kind: Tokenizer(write(root / kind, make())) for kind, make in KINDS.items()}
    yield made
    for each in made.values():
        each.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        st.lists(st.sampled_from(["hello", " ", "é", "e\u0301", "👩‍🚀", "ﬁ", "\n", "漢", "\0"]), max_size=12).map(
            "".join
        ),
    )
)
def test_tokens_lie_in_order_and_cover_all_but_white_space(every: dict[str, Tokenizer], text: str) -> None:
    raw = text.encode()
    for kind in ("byte-level", "sentencepiece", "unigram"):
        encoded = every[kind].encode(text)
        extents = list(zip(encoded.begins, encoded.ends, strict=True))
        assert all(0 <= begin <= end <= len(raw) for begin, end in extents), (kind, extents)
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(extents)), (kind, extents)
        covered = set().union(*(range(begin, end) for begin, end in extents))
        left = bytes(byte for place, byte in enumerate(raw) if place not in covered)
        assert not left.strip(), (kind, left)
        if kind == "byte-level":
            assert b"".join(map(encoded.bytes_of, range(len(encoded)))) == raw


def test_a_space_that_sentencepiece_puts_in_front_takes_no_bytes(opened: Opened) -> None:
    encoded = opened(sentencepiece_bpe()).encode("xhello")
    assert [(t.piece, t.begin, t.end) for t in encoded][:2] == [("▁", 0, 0), ("x", 0, 1)]


def test_accents_and_capitals_that_wordpiece_drops_stay_in_the_extent(opened: Opened) -> None:
    encoded = opened(wordpiece()).encode("Café World.")
    assert [(t.piece, t.text, t.special) for t in encoded] == [
        ("[CLS]", "", True),
        ("caf", "Caf", False),
        ("##e", "é", False),
        ("world", "World", False),
        (".", ".", False),
        ("[SEP]", "", True),
    ]
    assert (encoded.token(5).begin, encoded.token(5).end) == (12, 12)


def test_special_tokens_around_the_text_can_be_left_out(opened: Opened) -> None:
    tokenizer = opened(byte_level(bos=True))
    assert [t.piece for t in tokenizer.encode("hello")] == ["<|im_start|>", "hello"]
    assert [t.piece for t in tokenizer.encode("hello", special=False)] == ["hello"]
    assert [t.piece for t in tokenizer.encode("")] == ["<|im_start|>"]
    assert len(tokenizer.encode("", special=False)) == 0


def test_padding_and_truncation_of_the_file_do_not_count(opened: Opened) -> None:
    told = {
        **byte_level(),
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 64},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        },
    }
    assert cut(opened(told).encode("hello world on")) == ["hello", " world", " on"]


def test_a_text_that_is_not_unicode_says_which_code(opened: Opened) -> None:
    tokenizer = opened(byte_level())
    with pytest.raises(UsageError, match="byte 0xff at character 2"):
        tokenizer.encode("ab\udcff")
    with pytest.raises(UsageError, match=r"U\+D800 at character 0"):
        tokenizer.encode("\ud800")


def test_a_text_beyond_the_limit_is_refused(opened: Opened) -> None:
    with pytest.raises(UsageError, match="4,194,305 bytes, 4,194,304 can be cut"):
        opened(byte_level()).encode("x" * (MOST_TEXT + 1))


def test_a_megabyte_is_cut_whole(opened: Opened) -> None:
    text = "hello world on " * 2**16
    encoded = opened(byte_level()).encode(text)
    assert len(encoded) == 4 * 2**16
    assert encoded.token(len(encoded) - 2).text == " on"
    assert encoded.ends[-1] == len(text) == encoded.characters


# -- what is wrong with a tokenizer ------------------------------------------------------------


def nested(depth: int) -> bytes:
    inner = '{"type":"Sequence","normalizers":[' * depth + "]}" * depth
    return json.dumps(byte_level()).replace('"normalizer": null', f'"normalizer": {inner}').encode()


def split_by(pattern: str) -> dict[str, Any]:
    rule = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {**byte_level(), "pre_tokenizer": rule}


BROKEN: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "no JSON": (b"{oops", "tokenizer.json: the tokenizers library cannot read it: key must be a string"),
    "nothing": (b"", "EOF while parsing"),
    "a list": (b"[]", "invalid type: sequence"),
    "bytes that are not UTF-8": (b'{"version": "1.0\xff"}', "invalid unicode code point"),
    "a web page": (b"<!DOCTYPE html><html></html>", "this is"),
    "a git-lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs"),
    "nested without an end": (nested(100_000), "recursion limit"),
    "a regular expression nested without an end": (split_by("(" * 99_999 + ")" * 99_999), "Oniguruma error"),
    "an id that is no id": (whole({"type": "BPE", "vocab": {"a": 2**40}, "merges": []}), "expected u32"),
    "a merge of nothing": (whole({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "zz"]]}), "out of vocabulary"),
    "an empty unigram": (whole({"type": "Unigram", "vocab": [], "unk_id": 0}), "EmptyVocabulary"),
    "another kind": (whole({"type": "Nope", "vocab": {}}), "cannot read it"),
    "no unknown token": (
        whole({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}),
        "cannot cut this text: WordLevel error: Missing",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_tokenizer_is_one_sentence(opened: Opened, case: str) -> None:
    content, sentence = BROKEN[case]
    tokenizer = opened(content)
    with pytest.raises(HfbenchError, match=sentence) as caught:
        tokenizer.encode("hello")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    with pytest.raises(HfbenchError, match=sentence):
        tokenizer.encode("hello")


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "huge", b"{")
    with (folder / "tokenizer.json").open("r+b") as file:
        file.truncate(200 * 2**20)
    tokenizer = Tokenizer(folder)
    with pytest.raises(HfbenchError, match="has 209,715,200 bytes, more than"):
        tokenizer.encode("x")
    tokenizer.close()


@pytest.mark.parametrize("kind", ["fifo", "outside", "dangling", "folder"])
def test_only_a_plain_file_of_the_folder_is_read(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    file = folder / "tokenizer.json"
    write(tmp_path / "elsewhere", byte_level())
    {
        "fifo": lambda: os.mkfifo(file),
        "outside": lambda: file.symlink_to(tmp_path / "elsewhere" / "tokenizer.json"),
        "dangling": lambda: file.symlink_to("nowhere"),
        "folder": file.mkdir,
    }[kind]()
    tokenizer = Tokenizer(folder)
    with pytest.raises(HfbenchError, match=r"tokenizer\.json: "):
        tokenizer.encode("x")
    tokenizer.close()


def growing(times: int) -> dict[str, Any]:
    grows = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
    return {**byte_level(), "normalizer": {"type": "Sequence", "normalizers": [grows] * times}}


def test_a_tokenizer_that_takes_memory_is_ended_and_works_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfbench.tokens.tokenizer.ENCODE_SECONDS", 60.0)  # memory ends it, not the time to fill it
    tokenizer = opened(growing(8))
    with pytest.raises(HfbenchError, match="cutting this text takes more than 1,536 MiB"):
        tokenizer.encode("a")
    assert cut(tokenizer.encode("hello")) == ["hello"]


def test_a_vocabulary_that_takes_memory_is_ended(opened: Opened) -> None:
    """Half a million long words share no letters: each letter is a node of its own in the library's tree."""
    entries = ",".join(f'["{number:x}{"qwertyuiop" * 4}",-1]' for number in range(600_000))
    text = json.dumps(whole({"type": "Unigram", "vocab": "HERE", "unk_id": 0}))
    tokenizer = opened(text.replace('"HERE"', f"[{entries}]").encode())
    with pytest.raises(HfbenchError, match="loading the tokenizer takes more than 1,536 MiB"):
        tokenizer.encode("x")


def test_a_tokenizer_that_hangs_is_ended_and_works_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.tokens.tokenizer.ENCODE_SECONDS", 0.5)
    tokenizer = opened(split_by(r"a*[b-z]\d"))  # tried again at each place: as many steps as the square of the length
    with pytest.raises(HfbenchError, match=r"cutting this text takes more than \d s of CPU time"):
        tokenizer.encode("a" * 1_000_000 + "b")
    assert cut(tokenizer.encode("b")) == ["b"]


def test_a_process_that_vanishes_is_told_and_started_again(opened: Opened) -> None:
    tokenizer = opened(byte_level())
    tokenizer.encode("x")
    process = tokenizer._child._process
    assert process
    process.kill()
    process.wait()
    assert cut(tokenizer.encode("hello")) == ["hello"]
    assert tokenizer._child.generation == 2


def test_a_closed_tokenizer_leaves_no_process(opened: Opened) -> None:
    tokenizer = opened(byte_level())
    tokenizer.encode("x")
    process = tokenizer._child._process
    assert process
    tokenizer.close()
    assert process.wait(60) != 0
    with pytest.raises(HfbenchError, match="given up"):
        tokenizer.encode("x")


def test_added_tokens_of_hostile_names_are_kept_as_they_are(opened: Opened) -> None:
    told = byte_level()
    told["added_tokens"].append(added(9_000, "\x1b[2J\u202e"))
    encoded = opened(told).encode("a\x1b[2J\u202eb")
    assert [(t.piece, t.special) for t in encoded] == [("a", False), ("\x1b[2J\u202e", True), ("b", False)]


def test_without_the_tokenizers_library_the_sentence_names_the_extra(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizers.py").write_text("raise ImportError(\"No module named 'tokenizers'\", name='tokenizers')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tokenizer = opened(byte_level())
    with pytest.raises(MissingError, match=r"tokenizers.*pip install 'hfbench\[tokens\]'"):
        tokenizer.encode("x")


def test_the_same_text_gives_the_same_tokens_as_the_library(every: dict[str, Tokenizer]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    for kind, tokenizer in every.items():
        peer = tokenizers.Tokenizer.from_file(str(tokenizer.folder / "tokenizer.json"))
        for text in ("hello world", HARD, unigram.__doc__ or "", "  two  spaces "):
            assert list(tokenizer.encode(text).ids) == peer.encode(text).ids, (kind, text)
