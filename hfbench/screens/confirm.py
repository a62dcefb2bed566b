"""One question over the screen below; the safe answer is the one every other key gives."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from hfbench.errors import HfbenchError


class Confirm(ModalScreen[bool]):
    """Asks; `y` is yes, any other key no."""

    DEFAULT_CSS = """
    Confirm {
        align: center bottom;
        & ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
        & > Label { width: 1fr; height: auto; background: $panel; color: $text-warning; padding: 1 2; }
    }
    """

    BINDINGS = [Binding("y", "answer(True)", "yes"), Binding("n,escape", "answer(False)", "no")]

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        yield Label(f"{self.question}  y yes, any other key no", markup=False)

    def on_key(self, event: Key) -> None:
        """Whatever is not yes is no."""
        if event.key != "y":
            event.stop()
            self.dismiss(False)

    def action_answer(self, yes: bool) -> None:
        """Give the answer."""
        self.dismiss(yes)


class AskText(ModalScreen[str | None]):
    """Asks for one line of text; escape gives None. What `check` raises is told above the text, which stays."""

    DEFAULT_CSS = """
    AskText {
        align: center bottom;
        & ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
        & > Label { width: 1fr; height: auto; background: $panel; padding: 1 2 0 2; }
        & > #trouble { color: $text-error; padding: 0 2; display: none; }
        & > #trouble.-told { display: block; }
        & > Input { width: 1fr; height: 2; border: none; background: $panel; padding: 0 2; }
    }
    """

    BINDINGS = [Binding("escape", "leave", "keep things as they are")]

    def __init__(
        self, question: str, text: str = "", *, check: Callable[[str], object] | None = None, trouble: str = ""
    ) -> None:
        super().__init__()
        self.question, self.text, self.check, self.trouble = question, text, check, trouble

    def compose(self) -> ComposeResult:
        """The question above the line."""
        yield Label(self.question, markup=False)
        yield Label(self.trouble, id="trouble", classes="-told" if self.trouble else "", markup=False)
        yield Input(self.text, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter answers, also with nothing; what cannot be read is told and stays to be mended."""
        answer = event.value.strip()
        try:
            if answer and self.check:
                self.check(answer)
        except HfbenchError as error:
            told = self.query_one("#trouble", Label)
            told.update(str(error))
            told.add_class("-told")
        else:
            self.dismiss(answer)

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)
