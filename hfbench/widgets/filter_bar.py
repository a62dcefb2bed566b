"""The line above a table in which a filter is typed."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label

from hfbench.widgets.help import Help


class FilterInput(Input):
    """The input of a filter bar: enter and down keep the filter, escape drops it."""

    help = Help(
        "Filter",
        "Every word must occur; `*` stands for anything. `enter` keeps the filter and goes back to the rows.\n"
        "`escape` clears it.",
    )

    BINDINGS = [
        Binding("escape", "close(False)", "clear"),
        Binding("enter,down", "close(True)", "keep"),
    ]

    def action_close(self, keep: bool) -> None:
        """Close the bar at once: the next key is already on its way."""
        bar = self.parent
        assert isinstance(bar, FilterBar), "the input lives in a bar"
        bar.close(keep=keep)


class FilterBar(Horizontal):
    """Hidden until `open`; while a filter is kept it stays to be seen."""

    DEFAULT_CSS = """
    FilterBar {
        height: 1; display: none;
        & > Label { width: auto; color: $text-muted; }
        & > FilterInput { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
        & > FilterInput:focus { border: none; background: $surface; }
    }
    """

    @dataclass
    class Changed(Message):
        """The text changed, with each key."""

        bar: FilterBar
        text: str

        @property
        def control(self) -> FilterBar:
            """The bar it came from."""
            return self.bar

        def can_replace(self, message: Message) -> bool:
            """Only the latest text matters."""
            return isinstance(message, FilterBar.Changed) and message.bar is self.bar

    @dataclass
    class Closed(Message):
        """The bar was left, with the filter kept or cleared."""

        bar: FilterBar
        kept: bool

        @property
        def control(self) -> FilterBar:
            """The bar it came from."""
            return self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._back: Widget | None = None

    def compose(self) -> ComposeResult:
        """A label and the input."""
        yield Label("filter: ")
        yield FilterInput(select_on_focus=False, compact=True)

    @property
    def text(self) -> str:
        """The filter as it stands."""
        return self._input.value

    def open(self) -> None:
        """Show the bar and take the keys; they go back to the widget that has them now."""
        focused = self.screen.focused
        if focused is not None and focused is not self._input:
            self._back = focused
        self.display = True
        self.screen.set_focus(self._input)  # at once: keys typed ahead are already on their way

    def keep(self, text: str) -> None:
        """Show this filter as one that was typed and kept."""
        self._input.value = text
        self.display = bool(text)

    def close(self, *, keep: bool = True) -> None:
        """Give the keys back; the bar stays to be seen while it holds a filter."""
        if not keep:
            self._input.value = ""
        self.display = bool(self.text)
        if self._back is not None and self._back.is_attached:
            self.screen.set_focus(self._back)
        elif self.screen.focused is self._input:
            self.screen.set_focus(None)
        self.post_message(self.Closed(self, bool(self.text)))

    @on(Input.Changed)
    def _relay(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self, event.value))

    @property
    def _input(self) -> FilterInput:
        return self.query_one(FilterInput)
