"""The line above a hub's models: what was searched for, and where other words are typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label

from hfbench.widgets.help import Help


class SearchInput(Input):
    """Takes the keys only while words are typed: `tab` passes it by."""

    help = Help(
        "Search",
        "Words of a model's name, and `author:NAME` for those of one user or organisation. `enter` asks the hub, "
        "without words for all models. `escape` leaves things as they are.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "search"),
        Binding("escape", "leave", "leave"),
        Binding("down", "leave", "to the list", show=False),
    ]

    def action_leave(self) -> None:
        """Give the keys back at once: the next one is already on its way."""
        line = self.parent
        assert isinstance(line, HubSearchLine), "the input lives in a search line"
        line.close()


class HubSearchLine(Horizontal):
    """Shows the words of a search; `open` lets them be typed. Posts `Submitted`."""

    DEFAULT_CSS = """
    HubSearchLine {
        height: 1;
        & > Label { width: auto; color: $text-muted; }
        & > SearchInput { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
        & > SearchInput:focus { border: none; background: $surface; }
    }
    """

    @dataclass
    class Submitted(Message):
        """`enter`: these words are to be searched for."""

        words: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = ""
        self._back: Widget | None = None

    def compose(self) -> ComposeResult:
        """A label and the input."""
        yield Label("search: ", markup=False)
        yield SearchInput(select_on_focus=False, compact=True)

    def on_mount(self) -> None:
        """Nothing is typed yet."""
        self._input.can_focus = False

    @property
    def is_open(self) -> bool:
        """True while words are typed."""
        return self._input.can_focus

    def show(self, words: str) -> None:
        """The words of the search that is shown, unless others are being typed."""
        self._words = words
        if not self.is_open:
            self._input.value = words

    def open(self) -> None:
        """Take the keys; they go back to the widget that has them now."""
        focused = self.screen.focused
        if focused is not None and focused is not self._input:
            self._back = focused
        self._input.can_focus = True
        self.screen.set_focus(self._input)
        self._input.cursor_position = len(self._input.value)

    def close(self) -> None:
        """Give the keys back; words that were not asked for are forgotten."""
        if self._back is not None and self._back.is_attached:
            self.screen.set_focus(self._back)
        elif self.screen.focused is self._input:
            self.screen.set_focus(None)
        self._input.can_focus = False
        self._input.value = self._words

    def on_click(self, event: Click) -> None:
        """A click is as good as the key."""
        event.stop()
        self.open()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._words = event.value.strip()
        self.close()
        self.post_message(self.Submitted(self._words))

    @property
    def _input(self) -> SearchInput:
        return self.query_one(SearchInput)
