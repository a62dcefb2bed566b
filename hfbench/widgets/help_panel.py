"""`?`: what the focused widget is, and every key that works now."""

from __future__ import annotations

from typing import Any

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from hfbench.widgets.active_keys import active_keys
from hfbench.widgets.facts_table import content_of
from hfbench.widgets.help import Help
from hfbench.widgets.help_lines import help_lines
from hfbench.widgets.painted import suit_scrollbar

FALLBACK = Help("Help", "Nothing is focused. `tab` moves between regions.")


def help_of(screen: Screen[object]) -> Help:
    """The help of the focused widget, else of what holds it, else of the screen."""
    node = screen.focused
    for widget in [*(node.ancestors_with_self if node else ()), screen]:
        found = getattr(widget, "help", None)
        if isinstance(found, Help):
            return found
    return FALLBACK


class HelpPanel(ModalScreen[None]):
    """Help over the screen below; `escape`, `?` or `q` goes back."""

    DEFAULT_CSS = """
    HelpPanel {
        align: right top;
        & > VerticalScroll { width: 60; max-width: 100%; height: 1fr; background: $panel; padding: 1 2; }
        &:nocolor > VerticalScroll { border-left: solid $foreground; padding: 1 2 1 1; }
        & Static { width: 1fr; height: auto; }
    }
    """

    BINDINGS = [Binding("escape,question_mark,q", "leave", "back")]

    def __init__(self, help: Help, keys: list[tuple[str, str, str]]) -> None:
        super().__init__()
        self.help_text, self.keys = help, keys

    def compose(self) -> ComposeResult:
        """Text that scrolls."""
        with VerticalScroll():
            yield Static()

    def on_mount(self) -> None:
        """Give the keys to the text."""
        scroll = self.query_one(VerticalScroll)
        suit_scrollbar(scroll)
        scroll.focus()

    def on_resize(self, event: Resize) -> None:
        """Break lines for the width there is."""
        room = min(60, event.size.width) - 6
        self.query_one(Static).update(content_of(help_lines(self.help_text, self.keys, max(16, room))))

    def action_leave(self) -> None:
        """Back to the screen below."""
        self.dismiss(None)


def show_help(app: App[Any]) -> None:
    """Open the panel for what is focused now; it never opens twice."""
    if isinstance(app.screen, HelpPanel):
        return
    keys = [(" ".join(key.keys), key.label, key.where) for key in active_keys(app.screen)]
    app.push_screen(HelpPanel(help_of(app.screen), keys))
