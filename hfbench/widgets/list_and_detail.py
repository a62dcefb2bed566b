"""A table, and below or, where there is room, beside it the row under its cursor."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Resize

from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.span_view import SpanView

WIDE = 108
"""Columns from which the row is told beside the list: a terminal of 110, less what a screen leaves at its sides."""

LEAST_LIST = 4
"""Lines kept for the list above the text, its header among them."""


class ListAndDetail(SeeThrough, Container):
    """Above the text the list takes what it needs, and at most half; beside it, its share of the width."""

    DEFAULT_CSS = """
    ListAndDetail {
        height: 1fr; layout: vertical;
        & > SpanView { height: 1fr; margin-top: 1; }
        &.-wide { layout: horizontal; }
        &.-wide > RecordTable { width: 60%; height: 1fr; }
        &.-wide > SpanView { width: 1fr; margin: 0 0 0 3; }
    }
    """

    def __init__(self, table: RecordTable, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.table, self.detail = table, SpanView()

    def compose(self) -> ComposeResult:
        """The list and the text."""
        yield self.table
        yield self.detail

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self.share_room()

    def share_room(self) -> None:
        """Give the list its lines; to be called when it has other rows."""
        if self.is_mounted:
            most = max(LEAST_LIST, self.size.height // 2)
            wanted = min(max(LEAST_LIST, self.table.total + 2), most)
            self.table.styles.height = "1fr" if self.has_class("-wide") else wanted

    def to_top(self) -> None:
        """Show the text from its first line: it is that of another row."""
        self.detail.action_scroll_ends(-1)
