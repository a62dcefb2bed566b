"""Tokens as lines to paint: white space made visible, a mark between two, special ones told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import chop_cells

from hfbench.text import printable
from hfbench.tokens.encoded import ADDED, SPECIAL, Encoded
from hfbench.widgets.cells import Span, width_of
from hfbench.widgets.glyphs import ASCII, Glyphs

LONGEST = 400
"""Bytes painted of one token."""

_WORDS = re.compile(r"\S+ ?| +")

KINDS = {SPECIAL: "special", ADDED: "added"}
"""The kinds of token that are named."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs of white space and of the border between two tokens."""

    space: str
    tab: str
    newline: str
    between: str


_UNICODE = Marks(space="·", tab="→", newline="↵", between="│")
_ASCII = Marks(space="_", tab="\\t", newline="\\n", between="|")


def marks_of(glyphs: Glyphs) -> Marks:
    """The signs for a terminal."""
    return _ASCII if glyphs == ASCII else _UNICODE


def visible(text: str, marks: Marks) -> str:
    """The text on one line, safe to paint, in which every character takes some room."""
    shown = text.replace(" ", marks.space).replace("\t", marks.tab).replace("\n", marks.newline)
    return printable(shown)


def token_text(encoded: Encoded, row: int, marks: Marks) -> str:
    """What a token stands for; its piece where it stands for nothing in the text."""
    raw = encoded.bytes_of(row)[:LONGEST]
    text = raw.decode("utf-8", "surrogateescape") if raw else encoded.pieces.get(encoded.ids[row], "")[:LONGEST]
    return visible(text, marks)


def style_of_token(encoded: Encoded, row: int) -> str:
    """The style of a token: neighbours differ, and special ones from both."""
    kind = encoded.kinds[row]
    return "title" if kind == SPECIAL else "warn" if kind == ADDED else ("accent" if row % 2 else "")


def flow(
    encoded: Encoded, first: int, width: int, height: int, marks: Marks, *, cursor: int = -1
) -> tuple[list[list[Span]], int]:
    """At most `height` lines of tokens from the row `first` on, and the row after the last that is whole.

    A token that ends a line of the text ends one of these.
    """
    lines: list[list[Span]] = [[]]
    used, row = 0, first
    while row < len(encoded) and len(lines) <= height:
        style = "cursor" if row == cursor else style_of_token(encoded, row)
        text = token_text(encoded, row, marks)
        mark = marks.between if lines[-1] else ""
        if used + len(mark) + min(width_of(text), width // 2) > width:
            lines.append([])
            used, mark = 0, ""
        if mark:
            lines[-1].append((mark, "muted"))
            used += len(mark)
        for number, part in enumerate(_parts(text, width - used, width)):
            if number:
                lines.append([])
                used = 0
            lines[-1].append((part, style))
            used += width_of(part)
        if encoded.raw[encoded.begins[row] : encoded.ends[row]].endswith(b"\n"):
            lines.append([])
            used = 0
        if len(lines) > height and lines[height]:
            break  # only a part of this one is in view
        row += 1
    return [line for line in lines[:height] if line], row


def _parts(text: str, room: int, width: int) -> Iterator[str]:
    """The text cut where lines end: `room` cells are left of the first, maybe none, `width` of each further one."""
    if width_of(text) <= room:
        yield text
        return
    head = chop_cells(text, room)[0] if room > 1 or (room == 1 and width_of(text[0]) < 2) else ""
    yield head
    yield from chop_cells(text[len(head) :], max(2, width))


def special_segments(text: str, encoded: Encoded | None) -> list[tuple[str, str]]:
    """The begin of an encoded text, or all of it, in styled parts: special tokens stand out, where it was cut."""
    if encoded is None:
        return [(text, "")]

    def between(begin: int, end: int) -> str:
        return encoded.raw[begin:end].decode("utf-8", "surrogateescape")

    parts: list[tuple[str, str]] = []
    place, row, stop = 0, -1, len(text.encode())
    while (row := encoded.kinds.find(SPECIAL, row + 1)) >= 0 and encoded.ends[row] <= stop:
        parts += [(between(place, encoded.begins[row]), ""), (between(encoded.begins[row], encoded.ends[row]), "title")]
        place = encoded.ends[row]
    return [part for part in [*parts, (between(place, stop), "")] if part[0]]


def marked_lines(segments: Sequence[tuple[str, str]], width: int, marks: Marks) -> list[list[Span]]:
    """Text in styled segments as lines of at most `width` cells, broken between words.

    The end of each line of the text has its mark, so that breaking shows as what it is.
    """
    lines: list[list[Span]] = [[]]
    used, room = 0, max(1, width - width_of(marks.newline))
    for text, style in segments:
        for number, part in enumerate(text.split("\n")):
            if number:
                lines[-1].append((marks.newline, "muted"))
                lines.append([])
                used = 0
            for word in _WORDS.findall(printable(part.expandtabs(4))):
                if used and used + width_of(word.rstrip()) > room:
                    lines.append([])
                    used = 0
                for place, piece in enumerate(_parts(word, room - used, room)):
                    if place:
                        lines.append([])
                        used = 0
                    lines[-1].append((piece, style))
                    used += width_of(piece)
    return lines
