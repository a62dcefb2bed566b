"""Text that is safe to paint and measured in terminal cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

ELLIPSIS = "…"

# Control characters and line separators, bidirectional overrides and other format
# characters, fillers that look like nothing, tags, and the lone surrogates that stand for bytes that are not UTF-8.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)


_GROUPED = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")
"""A number as hfbench writes large ones; digits of hashes and layers are parts of names."""


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: show the byte it stands for
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match.group(), f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """`text` with every control, escape and bidirectional character spelled out, on one line."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> list[str]:
    """The lines of a text, each safe to paint; tabs become spaces."""
    return [printable(line.expandtabs(4)) for line in text.splitlines()]


def cells(text: str) -> int:
    """Terminal cells `text` takes: 2 for wide East Asian characters, 0 for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """`text` cut to at most `width` cells, with an ellipsis when something was cut."""
    if cells(text) <= width:
        return text
    kept, used = [], cells(ellipsis)
    for character in text:
        used += cells(character)
        if used > width:
            break
        kept.append(character)
    return (before_number(text, len(kept)) + ellipsis) if width >= cells(ellipsis) else ""


def before_number(text: str, end: int) -> str:
    """The first `end` characters, or fewer where that would leave a part of a number such as 269,096,224."""
    inside = _number_at(text, end)
    return text[: inside.start() if inside else end]


def after_number(text: str, begin: int) -> str:
    """The characters from `begin` on, or fewer where these would begin inside a number such as 269,096,224."""
    inside = _number_at(text, begin)
    return text[inside.end() if inside else begin :]


def _number_at(text: str, place: int) -> re.Match[str] | None:
    """The number with separators that a cut at `place` would go through."""
    numbers = _GROUPED.finditer(text) if "," in text else ()
    return next((each for each in numbers if each.start() < place < each.end()), None)


def clip_middle(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """`text` cut in its middle to at most `width` cells: the ends of tensor names and paths tell most."""
    if cells(text) <= width:
        return text
    room = width - cells(ellipsis)
    if room < 2:
        return clip(text, width, ellipsis=ellipsis)
    tail = room // 2
    while tail and cells(text[-tail:]) > room // 2:
        tail -= 1
    head = clip(text, room - cells(text[-tail:]) if tail else room, ellipsis="")
    return before_number(text, len(head)) + ellipsis + after_number(text, len(text) - tail)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None when none is near."""
    from difflib import get_close_matches  # only an error needs it

    found = get_close_matches(word, list(known), 1, 0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` or an empty string."""
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near else ""


def shell_line(words: Iterable[str]) -> str:
    """Words as one line that is safe to paint and that bash reads back as they are: `serve 'my model' $'a\\nb'`."""
    from shlex import quote  # only commands need it

    return " ".join(quote(word) if printable(word) == word else _ansi_quoted(word) for word in words)


def _ansi_quoted(word: str) -> str:
    told = []
    for character in word:
        if character in "\\'":
            told.append(f"\\{character}")
        elif printable(character) == character:
            told.append(character)
        else:
            told += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")]
    return f"$'{''.join(told)}'"
