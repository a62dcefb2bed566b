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
        """One line; names that do not fit are left out with a sign, never the front one."""
        return [tab_spans(self.names, self.current, width, self.glyphs.ellipsis)]

    def on_click(self, event: Click) -> None:
        """Tell which name lies under the pointer."""
        ellipsis, end = self.glyphs.ellipsis, 0
        for text, _ in tab_spans(self.names, self.current, self.size.width, ellipsis):
            end += width_of(text)
            if event.x < end:
                if text != ellipsis:
                    self.post_message(self.Chosen(text[1:-1]))
                return


def tab_spans(names: Sequence[str], current: str, width: int, ellipsis: str) -> list[Span]:
    """As many names as fit whole, in order, the current among them; an ellipsis stands where names are left out."""
    sign = width_of(ellipsis)
    shown = _fitting(names, names.index(current), width, sign)
    kept = [names[place] for place in shown]
    spans: list[Span] = [(f"[{name}]", "title") if name == current else (f" {name} ", "muted") for name in kept]
    left = width - sum(width_of(text) for text, _ in spans)
    before, after = shown.start > 0 and left >= sign, shown.stop < len(names)
    return [
        *([(ellipsis, "muted")] if before else []),
        *spans,
        *([(ellipsis, "muted")] if after and left >= sign * (1 + before) else []),
    ]


def _fitting(names: Sequence[str], at: int, width: int, sign: int) -> range:
    """The places of the names that fit beside the signs, as many before the current one as there is room for."""
    for first in range(at + 1):
        stop, used = first, sign if first else 0
        while stop < len(names):
            used += width_of(names[stop]) + 2
            if used + (sign if stop + 1 < len(names) else 0) > width:
                break
            stop += 1
        if stop > at:
            return range(first, stop)
    return range(at, at + 1)
