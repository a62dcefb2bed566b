"""Textual's driver for a terminal, telling the terminal only what changes of its colours."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from textual.driver import Driver

from hfbench.pen import PenSaver


@lru_cache(maxsize=4)
def frugal(driver: type[Driver]) -> type[Driver]:
    """The same driver whose output selects a pen only where it changes.

    Rich ends every span with a reset and begins the next with both colours; over SSH that is half of a repaint.
    """

    class Frugal(driver):  # type: ignore[valid-type, misc]
        def __init__(self, *words: Any, **named: Any) -> None:
            super().__init__(*words, **named)
            self._pen = PenSaver()

        def write(self, data: str) -> None:
            super().write(self._pen.save(data))

    return Frugal
