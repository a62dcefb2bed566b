"""Textual's driver for a terminal: telling it only what changes of its colours, at the pace of its line."""

from __future__ import annotations

import codecs
import os
import sys
import time
from functools import lru_cache
from typing import Any

from textual.driver import Driver

from hfbench.line_pace import LinePace, serial_baud
from hfbench.pen import PenSaver
from hfbench.stops_from_loop import StopsFromLoop
from hfbench.text import cells
from hfbench.widgets.glyphs import ASCII, glyphs_of

LINES = dict.fromkeys(range(0x2500, 0x2580), "+") | {ord(sign): "-" for sign in "─━┄┅┈┉╌╍═"}
LINES |= {ord(sign): "|" for sign in "│┃┆┇┊┋╎╏║"}
BLOCKS = dict.fromkeys(range(0x2580, 0x25A0), "#") | {ord(sign): "|" for sign in "▏▎▍▌▋▊▉▐▕"}
BLOCKS |= {ord(sign): "_" for sign in "▁▂▃▄"} | {ord("▔"): "-"}
PLAIN = LINES | BLOCKS | {ord("🔎"): "/ ", ord("…"): ".", ord("·"): "|"}
"""What Textual's own widgets draw with, in ASCII; ours choose their signs themselves."""

IN_CELLS = "hfbench.in_cells"
"""How what a terminal cannot show is written: as many question marks as it is wide, so that nothing is moved."""


@lru_cache(maxsize=4)
def frugal(driver: type[Driver]) -> type[Driver]:
    """The same driver whose output selects a pen only where it changes.

    Rich ends every span with a reset and begins the next with both colours; over SSH that is half of a repaint.
    """

    class Frugal(StopsFromLoop, driver):  # type: ignore[valid-type, misc]
        def __init__(self, app: Any, *words: Any, **named: Any) -> None:
            super().__init__(app, *words, **named)
            self._pen = PenSaver()
            self._signs = PLAIN if glyphs_of(app) == ASCII else {}
            self._encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
            self._pace = LinePace(getattr(app, "baud", 0) or serial_baud(getattr(self, "fileno", -1)))

        def _get_terminal_size(self) -> tuple[int, int]:
            """The terminal's own: COLUMNS and LINES that somebody exported would never change."""
            try:
                columns, rows = os.get_terminal_size(self.fileno)
            except OSError:
                columns = rows = 0
            return (columns, rows) if columns and rows else super()._get_terminal_size()

        def write(self, data: str) -> None:
            encoded = self._pen.save(data).translate(self._signs).encode(self._encoding, IN_CELLS)
            self._pace.wrote(len(encoded), time.monotonic())
            super().write(encoded.decode(self._encoding))

        def may_paint(self, asked: float) -> bool:
            """False while the terminal has not taken what was painted; `asked` is when a key was last pressed."""
            thread = getattr(self, "_writer_thread", None)
            return not (thread and thread._queue.qsize()) and self._pace.may_paint(time.monotonic(), asked)

        def start_application_mode(self) -> None:
            self._pen = PenSaver()  # whoever had the terminal meanwhile left another pen in it
            super().start_application_mode()

    return Frugal


def _in_cells(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only writing asks"
    return "?" * cells(error.object[error.start : error.end]), error.end


codecs.register_error(IN_CELLS, _in_cells)
