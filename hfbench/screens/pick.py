"""Asks for one of many names: typing narrows the list, enter takes what the cursor is on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from hfbench.widgets.help import Help
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

COLUMNS = (
    Column("name", "Name", flexible=True, min=14, max=60, middle=True),
    Column("about", "About", priority=1, flexible=True, min=8, max=60),
)

UNMATCHED = "no name has it; ctrl+u clears it, escape closes"


class PickInput(Input):
    """Narrows the list below it."""

    help = Help(
        "Choose a name",
        "Type words that occur in it; `up` and `down` move in the list, `enter` takes the name there, `escape` closes "
        "the list and leaves things as they are.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.move('move', -1)", "up", show=False),
        Binding("down", "screen.move('move', 1)", "down", show=False),
        Binding("pageup", "screen.move('page', -1)", "page up", show=False),
        Binding("pagedown", "screen.move('page', 1)", "page down", show=False),
    ]


class Pick(ModalScreen[str | None]):
    """Gives one of the names, each told with a few words; None when `escape` was pressed."""

    DEFAULT_CSS = """
    Pick {
        align: center middle;
        & > Vertical { width: 80%; height: 70%; background: $panel; padding: 1 2; }
        &:nocolor > Vertical { border: solid $foreground; padding: 0 1; }
        & Label { width: 1fr; text-style: bold; }
        & Input { margin: 1 0; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("enter", "take", "take", priority=True),
    ]

    def __init__(self, question: str, names: Sequence[tuple[str, str]], current: str) -> None:
        super().__init__()
        self.question, self.names, self.current = question, tuple(names), current

    def compose(self) -> ComposeResult:
        """The question, what is typed, and the names."""
        with Vertical():
            yield Label(self.question, markup=False)
            yield PickInput(compact=True, placeholder="part of a name")
            yield RecordTable(COLUMNS, empty="there is none", unmatched=UNMATCHED)

    def on_mount(self) -> None:
        """Show all, with the cursor on the one in force."""
        self.set_focus(self.query_one(PickInput))
        table = self.query_one(RecordTable)
        table.show([Record(name, {"name": name, "about": about}) for name, about in self.names])
        table.move_to(self.current)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        table = self.query_one(RecordTable)
        table.filter = event.value
        if event.value:
            table.cursor = 0

    @on(RecordTable.Chosen)
    def _clicked(self, message: RecordTable.Chosen) -> None:
        self.dismiss(message.key)

    def action_move(self, kind: str, by: int) -> None:
        """Move the cursor of the list, by rows or pages."""
        table = self.query_one(RecordTable)
        table.action_page(by) if kind == "page" else table.action_move(by)

    def action_take(self) -> None:
        """Give the name under the cursor."""
        if (key := self.query_one(RecordTable).current) is not None:
            self.dismiss(key)

    def action_leave(self) -> None:
        """Nothing was chosen."""
        self.dismiss(None)
