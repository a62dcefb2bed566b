"""Facts about one thing: label and value, aligned, in text that can be selected."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from hfbench.text import printable
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import glyphs_of

_STYLES = {
    "": "",
    "title": "bold",
    "muted": "$text-muted",
    "ok": "$text-success",
    "warn": "$text-warning",
    "error": "$text-error bold",
    "unknown": "$text-muted italic",
    "key": "$text-accent",
}
"""Styles of spans for content markup; theme variables only."""


def content_of(lines: Sequence[Sequence[Span]]) -> Content:
    """Spans as Textual content, which can be selected and copied."""
    return Content("\n").join(
        Content.assemble(*((text, _STYLES.get(style, "")) for text, style in line)) for line in lines
    )


class FactsTable(Static):
    """A title, when given, and one line a fact.

    Its height is told, not measured: of two changes that meet one layout, Textual may keep the height of the first.
    """

    DEFAULT_CSS = "FactsTable { height: 0; width: 1fr; }"

    def __init__(self, facts: Sequence[Fact] = (), *, title: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.facts, self.title = tuple(facts), title
        self._laid: list[list[Span]] | None = None

    def show(self, facts: Sequence[Fact], title: str | None = None) -> None:
        """Show these facts."""
        self.facts = tuple(facts)
        self.title = self.title if title is None else title
        self._lay_out(self.size.width)

    def on_mount(self) -> None:
        """Paint what was given before."""
        self._lay_out(self.size.width)

    def on_resize(self, event: Resize) -> None:
        """Break lines anew."""
        self._lay_out(self.size.width)

    def _lay_out(self, width: int) -> None:
        if not self.is_attached:
            return
        lines = facts_lines(self.facts, width or 80, glyphs_of(self.app))
        if self.title:
            lines.insert(0, [(printable(self.title), "title")])
        before, self._laid = self._laid, lines
        if lines != before:  # a widget that is shown again is told its size again
            self.update(content_of(lines), layout=False)
            self.styles.height = len(lines) + self.gutter.height
