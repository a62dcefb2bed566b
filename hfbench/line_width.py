"""How wide lines for people may be: as wide as the terminal; on a pipe nothing is cut."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar

from hfbench.text import clip, clip_middle

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be a tenth of what `--help` costs
    from typing import TextIO

USUAL = 80
"""Cells that lines are laid out for; narrower terminals get them too."""

ENDLESS = 1_000_000
"""Cells of a line that goes to a pipe or a file: what reads it wants names and paths whole."""

_given: ContextVar[int | None] = ContextVar("width of lines", default=None)


class lines_of:  # noqa: N801 - used as a function; contextlib would be a twentieth of what `--help` costs
    """Within it lines are laid out for `width` cells, wherever stdout leads."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __enter__(self) -> None:
        self._token = _given.set(self._width)

    def __exit__(self, *_: object) -> None:
        _given.reset(self._token)


def room(of: int = USUAL, *, shares: int = 1) -> int:
    """Cells of what gets `of` cells of 80; what a line has beyond those is divided by `shares`."""
    return of + (_width() - USUAL) // shares


def cut(text: str, taken: int = 0) -> str:
    """A name or path in what a line has beside `taken` cells, cut in its middle where that is too little."""
    return clip_middle(text, room() - taken, ellipsis="...")


def cut_end(text: str, taken: int = 0) -> str:
    """A text in what a line has beside `taken` cells, cut at its end where that is too little."""
    return clip(text, room() - taken, ellipsis="...")


def paragraph(text: str, taken: int = 0, *, most: int | None = None, first: str = "", later: str = "") -> list[str]:
    """A text broken between words beside `taken` cells, the indents included; of more than `most` lines the rest is
    left out. On a pipe nothing is left out and no word is broken."""
    from textwrap import wrap

    endless = _width() >= ENDLESS
    return wrap(
        text,
        (_asked() or USUAL if endless else _width()) - taken,
        initial_indent=first,
        subsequent_indent=later,
        max_lines=None if endless else most,
        placeholder=" ...",
        break_long_words=not endless,
        break_on_hyphens=False,
    )


def broken_for(stream: TextIO, text: str) -> str:
    """A text with line ends between words where `stream` is a terminal, as it is elsewhere; no word is broken."""
    width = _of_terminal(stream)
    if width is None or len(text) <= width:
        return text
    from textwrap import wrap

    return "\n".join(wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False))


def _width() -> int:
    given = _given.get()
    if given is not None:
        return given
    width = _of_terminal(sys.stdout)
    return ENDLESS if width is None else max(USUAL, width)


def _of_terminal(stream: TextIO | None) -> int | None:
    """Columns of a terminal, None of anything else."""
    try:
        if stream is None or not stream.isatty():
            return None
        return _asked() or os.get_terminal_size(stream.fileno()).columns or USUAL
    except (OSError, ValueError):  # closed, or not a file
        return USUAL if stream is sys.stdout else None


def _asked() -> int:
    """The width that COLUMNS asks for, 0 for none."""
    told = os.environ.get("COLUMNS", "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 6 else 0
