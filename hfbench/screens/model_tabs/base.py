"""What the tabs of a model share: a table with its filter, and the details of the row under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from hfbench.screens.model_view import ModelView
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help import Help, told_by
from hfbench.widgets.notice import Notice
from hfbench.widgets.painted import suit_scrollbar
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.unstyled_focus import UnstyledFocus

LONGEST_VALUE = 1_000
"""Characters of one value in the details; the whole of it is what `y` copies."""


class ModelTab(SeeThrough, Vertical):
    """One tab. It shows views and keeps nothing else of the model."""

    title: ClassVar[str]
    keys_to: ClassVar[type[Widget]]
    """The widget that wants the keys most."""
    filters: ClassVar[bool] = True
    """Whether `/` does something here."""

    DEFAULT_CSS = "ModelTab { height: 1fr; }"

    @property
    def at_rest(self) -> bool:
        """False while the tab is still at work on what it shows."""
        return True

    def show(self, view: ModelView) -> None:
        """Show what is known now."""
        raise NotImplementedError

    def copied(self) -> str:
        """What `y` copies, empty when there is nothing."""
        return ""

    def take_focus(self) -> None:
        """Give the keys to the widget that wants them most."""
        self.screen.set_focus(self.query_one(self.keys_to))


class Reading(SeeThrough, UnstyledFocus, VerticalScroll, inherit_bindings=False):
    """Text that scrolls up and down; left and right are left to the tabs."""

    DEFAULT_CSS = "Reading { scrollbar-size-vertical: 1; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("home", "scroll_home", "Top", show=False),
        Binding("end", "scroll_end", "End", show=False),
    ]

    def on_mount(self) -> None:
        """Draw the scrollbar with what the terminal can show."""
        suit_scrollbar(self)


class Detail(FactsTable):
    """All of one row, below its table; `enter` opens it, `escape` or `enter` closes it."""

    DEFAULT_CSS = "Detail { display: none; margin-top: 1; max-height: 9; }"

    def open(self, facts: Sequence[Fact]) -> None:
        """Show these facts, cut to a length that can be laid out at once."""
        self.show([Fact(fact.label, shortened(fact.value), fact.state) for fact in facts])
        self.display = True


class DetailTab(ModelTab):
    """A tab with a filter on top and details at the bottom that follow the cursor once they are open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_detail", "close", show=False, id="model.close-detail"),
    ]

    def facts(self) -> Sequence[Fact]:
        """The details of the row under the cursor."""
        return ()

    def toggle_detail(self) -> None:
        """Open the details, or close them."""
        detail = self.query_one(Detail)
        if detail.display:
            detail.display = False
        else:
            detail.open(self.facts())

    def follow_detail(self) -> None:
        """The cursor moved: show the details of the row it is on, if they are open."""
        detail = self.query_one(Detail)
        if detail.display:
            detail.open(self.facts())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`escape` is the screen's while no details are open."""
        return action != "close_detail" or (self.is_mounted and self.query_one(Detail).display)

    def action_close_detail(self) -> None:
        """Close the details."""
        self.query_one(Detail).display = False


class RecordTab(DetailTab):
    """A tab of records: subclasses give columns, records and the details of one."""

    keys_to = RecordTable
    columns: ClassVar[tuple[Column, ...]]
    empty: ClassVar[str]

    def above(self) -> ComposeResult:
        """What stands above the table."""
        yield from ()

    def records(self, view: ModelView) -> Sequence[Record]:
        """The rows of a view."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Trouble, filter, table, details."""
        yield Notice()
        yield from self.above()
        yield FilterBar()
        table = RecordTable(self.columns, empty="reading ...")
        table.help = Help(self.title, f"{told_by(self)}\n{RecordTable.help.text}\n`y` copies the row.")
        yield table
        yield Detail()

    def show(self, view: ModelView) -> None:
        """Show the rows, and keep the cursor on its own."""
        table = self.query_one(RecordTable)
        table.empty = "reading ..." if view.reading else self.empty
        table.show(self.records(view))
        self.follow_detail()

    @property
    def current(self) -> str | None:
        """The key of the row under the cursor."""
        return self.query_one(RecordTable).current

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(RecordTable).filter = message.text

    @on(RecordTable.Chosen)
    def _choose(self) -> None:
        self.toggle_detail()

    @on(RecordTable.Highlighted)
    def _follow(self) -> None:
        self.follow_detail()


def shortened(text: str, most: int = LONGEST_VALUE) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"
