"""The names of a model's tabs on one line; the one in front stands in brackets, as the keys do that change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.events import Click
from textual.message import Message

from hfbench.widgets.cells import Span, width_of
from hfbench.widgets.painted import Painted


class TabLine(Painted):
    """Shows tabs and is clicked; who owns it decides which is in front."""

    DEFAULT_CSS = "TabLine { height: 1; margin-bottom: 1; }"

    @dataclass
    class Chosen(Message):
        """A name was clicked."""

        name: str

    def __init__(self, names: Sequence[str], current: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names, self.current = tuple(names), current

    def show(self, current: str) -> None:
        """Put another tab in front."""
        self.current = current
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line; where names do not fit, the front one is always whole."""
        return [self._shown(width)]

    def on_click(self, event: Click) -> None:
        """Tell which name lies under the pointer."""
        end = 0
        for name, (text, _) in zip(self._visible(self.size.width), self._shown(self.size.width), strict=False):
            end += width_of(text)
            if event.x < end:
                self.post_message(self.Chosen(name))
                return

    def _shown(self, width: int) -> list[Span]:
        return [
            (f"[{name}]", "title") if name == self.current else (f" {name} ", "muted") for name in self._visible(width)
        ]

    def _visible(self, width: int) -> list[str]:
        """As many names as fit, in order, the current among them."""
        first = 0
        while first < self.names.index(self.current) and _need(self.names[first : self._at + 1]) > width:
            first += 1
        return list(self.names[first:])

    @property
    def _at(self) -> int:
        return self.names.index(self.current)


def _need(names: Sequence[str]) -> int:
    return sum(width_of(name) + 2 for name in names)
