"""How many tokens the several files of tokenizers hold, counted without any tokenizer library."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hfbench.models.json_text import JsonObject, parse_object

LONGEST_PIECE = 2**16
"""Bytes of one sentencepiece entry; more means that the file is something else."""

MERGES = re.compile(rb'"merges"\s*:\s*\[')
"""Where the merges of a tokenizer.json begin."""

_LAST_BRACKETS = re.compile(rb"\]\s*\}\s*\}\s*\Z")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id. `size` counts ids, added tokens included; `model` names the algorithm."""

    model: str | None
    size: int
    highest_id: int
    added: dict[str, int] = field(default_factory=dict)
    special: frozenset[str] = frozenset()
    duplicate_ids: tuple[int, ...] = ()


def parse_tokenizer_json(raw: bytes) -> JsonObject:
    """The object of tokenizer.json without its merges, which are two thirds of the file and tell nothing here."""
    merges = MERGES.search(raw)
    end = _LAST_BRACKETS.search(raw, max(merges.end(), len(raw) - 4096)) if merges else None
    if merges and end:
        return parse_object(raw[: merges.end()] + raw[end.start() :])
    return parse_object(raw)


def of_tokenizer_json(content: dict[str, Any]) -> Vocabulary:
    """The vocabulary of the object in tokenizer.json; what is not of the expected type counts as absent."""
    model = content.get("model")
    model = model if isinstance(model, dict) else {}
    ids = _ids(model.get("vocab"))
    added, special, by_id, twice = {}, set(), dict[int, str](), []
    entries = content.get("added_tokens")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or type(entry.get("id")) is not int:
            continue
        token, number = entry["content"], entry["id"]
        if by_id.setdefault(number, token) != token:
            twice.append(number)
        added[token] = number
        if entry.get("special") is True:
            special.add(token)
    ids |= set(by_id)
    kind = model.get("type")
    name = kind if isinstance(kind, str) else None
    return Vocabulary(name, len(ids), max(ids, default=-1), added, frozenset(special), tuple(twice))


def of_tekken(content: dict[str, Any]) -> Vocabulary:
    """The vocabulary of Mistral's tekken.json: its config says how much of the list is used."""
    config = content.get("config")
    size = config.get("default_vocab_size") if isinstance(config, dict) else None
    listed = content.get("vocab")
    size = size if type(size) is int and size >= 0 else len(listed) if isinstance(listed, list) else 0
    entries = content.get("special_tokens")
    special = {
        entry["token_str"]: entry["rank"]
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("token_str"), str) and type(entry.get("rank")) is int
    }
    return Vocabulary("tekken", size, size - 1, special, frozenset(special))


def of_sentencepiece(raw: bytes) -> Vocabulary | None:
    """The pieces of a sentencepiece model, or the lines of a tiktoken file of the same name; None when neither."""
    if re.match(rb"[A-Za-z0-9+/]+=* [0-9]+\r?\n", raw):
        lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
        return Vocabulary("tiktoken", lines, lines - 1)
    pieces = _count_pieces(raw)
    return Vocabulary("sentencepiece", pieces, pieces - 1) if pieces else None


def of_lines(raw: bytes) -> Vocabulary:
    """One token a line, as in vocab.txt."""
    lines = len(raw.splitlines())
    return Vocabulary("WordPiece", lines, lines - 1)


def of_vocab_json(content: dict[str, Any]) -> Vocabulary:
    """Token to id, as in vocab.json."""
    ids = _ids(content)
    return Vocabulary("BPE", len(ids), max(ids, default=-1))


def _ids(vocab: object) -> set[int]:
    if isinstance(vocab, dict):
        return {number for number in vocab.values() if type(number) is int and number >= 0}
    return set(range(len(vocab))) if isinstance(vocab, list) else set()


def _count_pieces(raw: bytes) -> int:
    """Entries of field 1 at the top of the protobuf message: each is a tag 0x0a, a length and that many bytes."""
    place = pieces = 0
    while place < len(raw) and raw[place] == 0x0A:
        length, place = _varint(raw, place + 1)
        if not 0 < length <= LONGEST_PIECE or place + length > len(raw):
            return 0
        place += length
        pieces += 1
    return pieces


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while place < len(raw) and shift < 64:
        byte = raw[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place
    return -1, place
