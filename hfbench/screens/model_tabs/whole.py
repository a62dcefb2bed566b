"""Tabs of records whose details may be long: they scroll below the table, whole."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from hfbench.screens.model_tabs.base import Detail, Reading, RecordTab, shortened
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help import Help, told_by
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_table import RecordTable

LONGEST_WHOLE = 20_000
"""Characters of one value that are laid out; modules left unquantized fill that much. `y` copies all of any value."""


class Whole(Reading):
    """The details of one row, as tall as they need up to half of the tab; `tab` goes in to scroll them."""

    help = Help("Details", "All of the row above. The arrows scroll; `escape` closes the details.")

    DEFAULT_CSS = "Whole { display: none; height: auto; max-height: 50%; margin-top: 1; }"


class WholeDetail(Detail):
    """All of one row."""

    DEFAULT_CSS = "WholeDetail { margin-top: 0; max-height: 100000; }"

    def open(self, facts: Sequence[Fact]) -> None:
        """Show these facts; only what no screen could be scrolled through is cut."""
        self.show([Fact(fact.label, shortened(fact.value, LONGEST_WHOLE), fact.state) for fact in facts])
        self.display = True


class WholeTab(RecordTab):
    """A tab of records with a line on the row under the cursor, in whose place `enter` shows all of it."""

    DEFAULT_CSS = """
    WholeTab {
        & .above { height: auto; width: 1fr; color: $text-muted; }
        & RecordTable { min-height: 4; }
        &.-opened #layout { display: none; }
        & #hint { height: auto; max-height: 3; width: 1fr; color: $text-muted; }
    }
    """

    _followed: str | None = None
    """The row the details were last of: they scroll to their top for another one only."""

    def hint(self) -> str:
        """What there is to say of the row under the cursor while its details are closed."""
        return ""

    def below(self) -> ComposeResult:
        """What stands below the table."""
        yield from ()

    def compose(self) -> ComposeResult:
        """Trouble, what stands above, filter, table, the line on one row, details."""
        yield Notice()
        yield from self.above()
        yield FilterBar()
        table = RecordTable(self.columns, empty="reading ...")
        table.help = Help(self.title, f"{told_by(self)}\n{RecordTable.help.text}\n`y` copies the row.")
        yield table
        yield Static(id="hint", markup=False)
        yield from self.below()
        with Whole():
            yield WholeDetail()

    def toggle_detail(self) -> None:
        """Open the details, or close them."""
        super().toggle_detail()
        self._place()

    def follow_detail(self) -> None:
        """The cursor moved: details or the line tell of the row it is on."""
        super().follow_detail()
        if self.current != self._followed:
            self._followed = self.current
            self.query_one(Whole).scroll_home(animate=False)
        self._place()

    def action_close_detail(self) -> None:
        """Close the details; the keys go back to the table."""
        held = self.query_one(Whole).has_focus
        super().action_close_detail()
        self._place()
        if held:
            self.take_focus()

    @on(RecordTable.Highlighted)
    def _hint(self) -> None:
        self._place()

    def _place(self) -> None:
        opened, hint = self.query_one(Detail).display, self.query_one("#hint", Static)
        self.query_one(Whole).display = opened
        self.set_class(opened, "-opened")  # what stands above the table makes room
        text = "" if opened else self.hint()
        hint.display = bool(text)
        hint.update(text)
