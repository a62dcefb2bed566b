"""A text cut into tokens, held in columns: a million of them cost a screen nothing until they are looked at."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PLAIN, ADDED, SPECIAL = 0, 1, 2
"""Kinds of token: of the vocabulary, added to it, and added with a special meaning."""

FILE = "tokenizer.json"
"""What a tokenizer is made from, unless another file is named."""

ITEM = 4
"""Bytes of a number in the columns."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `piece` is its entry in the vocabulary, `text` what it stands for in the text.

    `begin` and `end` count bytes of the UTF-8 text; bytes of `text` that are no character are written as `\\xf0`.
    """

    id: int
    piece: str
    text: str
    begin: int
    end: int
    special: bool
    added: bool


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """All tokens of a text, which has `characters` characters and is `raw` as UTF-8."""

    raw: bytes
    characters: int
    ids: array[int]
    begins: array[int]
    ends: array[int]
    kinds: bytes
    pieces: Mapping[int, str] = field(repr=False)
    """The piece of every id that occurs."""

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.ids)

    def __iter__(self) -> Iterator[Token]:
        """The tokens in order."""
        return map(self.token, range(len(self)))

    def bytes_of(self, row: int) -> bytes:
        """What a token stands for in the text."""
        return self.raw[self.begins[row] : self.ends[row]]

    def token(self, row: int) -> Token:
        """One token; IndexError beyond the last."""
        number, kind = self.ids[row], self.kinds[row]
        return Token(
            id=number,
            piece=self.pieces.get(number, ""),
            text=self.bytes_of(row).decode("utf-8", "backslashreplace"),
            begin=self.begins[row],
            end=self.ends[row],
            special=kind == SPECIAL,
            added=kind != PLAIN,
        )

    def packed(self) -> bytes:
        """The columns as bytes."""
        return self.ids.tobytes() + self.begins.tobytes() + self.ends.tobytes() + self.kinds


def unpacked(text: str, raw: bytes, count: int, pieces: Mapping[int, str], columns: bytes) -> Encoded:
    """The tokens that `packed` wrote, of a text and its bytes."""
    ids, begins, ends = array("I"), array("I"), array("I")
    view, size = memoryview(columns), ITEM * count
    for number, column in enumerate((ids, begins, ends)):
        column.frombytes(view[number * size : (number + 1) * size])
    kinds = bytes(view[3 * size :])
    return Encoded(raw=raw, characters=len(text), ids=ids, begins=begins, ends=ends, kinds=kinds, pieces=pieces)
