"""Shows a new token once, over the screen below, and copies it on request."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Label

from hfbench.errors import UsageError
from hfbench.units import parse_duration
from hfbench.widgets.clipboard import copy_text

SCOPES = ("read", "write")
ASKED = "new token: USER, read or write (without it write), lifetime such as 30d or 12h (without it: never expires)"
EXAMPLE = "write for example: alice read 30d"


def parsed(text: str) -> tuple[str, str, str]:
    """User, scope and lifetime in seconds, empty for ever, of `alice read 30d`; UsageError says what is wrong."""
    words = text.split()
    if not 1 <= len(words) <= 3:
        raise UsageError(f"{text!r} is not a user, a scope and a lifetime", remedy=EXAMPLE)
    if words[0] in SCOPES and (len(words) == 1 or words[1] not in SCOPES):
        raise UsageError(f"{text!r} names no user", remedy=EXAMPLE)
    scope = words[1] if len(words) > 1 else "write"
    if scope not in SCOPES:
        raise UsageError(f"{scope!r} is neither read nor write", remedy=EXAMPLE)
    return words[0], scope, f"{parse_duration(words[2]):.0f}s" if len(words) > 2 else ""


class ShowOnce(ModalScreen[None]):
    """A token; `y` copies it, any other key forgets it."""

    DEFAULT_CSS = """
    ShowOnce {
        align: center middle;
        & > Label { width: 1fr; height: auto; background: $panel; padding: 1 2; }
    }
    """

    def __init__(self, user: str, secret: str) -> None:
        super().__init__()
        self.user, self._secret = user, secret

    def on_mount(self) -> None:
        """No older sentence may cover what is seen only once."""
        self.app.clear_notifications()

    def compose(self) -> ComposeResult:
        """The token and what to do."""
        yield Label(
            f"token of {self.user}, shown only now; y copies it, any other key closes\n\n{self._secret}", markup=False
        )

    async def on_key(self, event: Key) -> None:
        """Copy, or close."""
        event.stop()
        if event.key == "y":
            self.notify(await copy_text(self.app, self._secret), markup=False)
        else:
            self.dismiss(None)
