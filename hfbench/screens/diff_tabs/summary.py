"""The verdict, both sides, and how much of each kind sets them apart."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.diff_view import DiffView, summary_facts
from hfbench.widgets.facts_lines import facts_lines
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.span_view import SpanView


class SummaryTab(DiffTab):
    """The whole in some lines."""

    title: ClassVar[str] = "Summary"
    section: ClassVar[str] = ""
    keys_to = SpanView
    filters: ClassVar[bool] = False

    def compose(self) -> ComposeResult:
        """Text that scrolls."""
        text = SpanView()
        text.help = Help(
            "Summary",
            "Both sides, what sets them apart, and what could not be compared.\n`v` reads and compares the values too.",
        )
        yield text

    def show(self, view: DiffView) -> None:
        """Show these facts."""
        facts, glyphs = list(summary_facts(view)), glyphs_of(self.app)
        self.query_one(SpanView).show(lambda width: facts_lines(facts, width, glyphs))
