"""The line in which a second model is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Label

from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest, Trouble
from hfbench.screens.recent import read_recent
from hfbench.widgets.help import Help


@dataclass
class RecentRead(Latest):
    """Models opened lately."""

    references: list[str]


class CompareInput(Input):
    """The reference of a model: a folder, or a repository in the cache."""

    help = Help(
        "Compare with",
        "A folder, or a repository cached, such as org/name. `right` takes what is suggested, a model opened lately.\n"
        "`enter` compares, `escape` compares with nothing.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close(False)", "compare with nothing"),
        Binding("enter,down", "close(True)", "compare"),
    ]

    def action_close(self, keep: bool) -> None:
        """Close the bar at once: the next key is already on its way."""
        bar = self.parent
        assert isinstance(bar, CompareBar), "the input lives in a bar"
        bar.close(keep=keep)


class CompareBar(Horizontal):
    """Hidden until `open`. It keeps the reference; what comes of it, its owner shows."""

    DEFAULT_CSS = """
    CompareBar {
        height: 1; display: none; margin-bottom: 1;
        & > Label { width: auto; color: $text-muted; }
        & > CompareInput { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
        & > CompareInput:focus { border: none; background: $surface; }
    }
    """

    @dataclass
    class Closed(Message):
        """The bar was left; the reference is empty when nothing is to be compared."""

        bar: CompareBar
        reference: str

        @property
        def control(self) -> CompareBar:
            """The bar it came from."""
            return self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._background = Background(self, Trouble)
        self._back: Widget | None = None

    def compose(self) -> ComposeResult:
        """A label and the input."""
        yield Label("compare with: ")
        yield CompareInput(select_on_focus=False, compact=True)

    def open(self) -> None:
        """Show the bar and take the keys from who has them now; suggestions come when they are read."""

        def read(stopped: Stopped, post: Callable[[Message], None]) -> None:
            post(RecentRead(read_recent()))

        self.display, self._back = True, self.screen.focused
        self.screen.set_focus(self.query_one(CompareInput))  # at once: keys typed ahead are already on their way
        self._background.start(read)

    def close(self, *, keep: bool = True) -> None:
        """Tell which model it is to be, and give the keys back."""
        entry = self.query_one(CompareInput)
        if not keep:
            entry.value = ""
        if self._back is not None and self._back.is_attached:
            self.screen.set_focus(self._back)
        self.display = False
        self.post_message(self.Closed(self, entry.value.strip()))

    @on(RecentRead)
    def _suggest(self, message: RecentRead) -> None:
        self.query_one(CompareInput).suggester = SuggestFromList(message.references)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
