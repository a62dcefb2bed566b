"""The bottom line: what can be done here."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Input

from hfbench.widgets.active_keys import active_keys
from hfbench.widgets.cells import Span
from hfbench.widgets.key_fit import GAP, Key, fit_keys
from hfbench.widgets.painted import Painted

ALWAYS = ("help", "quit")
"""Actions whose keys stand at the end of every line."""


class KeyLine(Painted):
    """Keys of the focused widget, then of the screen, then of the app; `? help  q quit` always stand at the end."""

    DEFAULT_CSS = "KeyLine { height: 1; dock: bottom; background: $panel; padding: 0 1; }"

    _due = False

    def on_mount(self) -> None:
        """Follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line."""
        active = active_keys(self.screen)
        keys = [Key(each.keys[0], each.label) for each in active if each.shown]
        always = [
            Key(min(each.keys, key=len), each.label) for label in ALWAYS for each in active if each.label == label
        ]
        focused = self.screen.focused
        if isinstance(focused, Input) or getattr(focused, "types_text", False):
            always = []  # a letter typed there is text
        spans: list[Span] = []
        for key in fit_keys(keys, width, always):
            spans += [(" " * GAP if spans else "", ""), (key.key, "key"), (f" {key.label}", "")]
        return [spans]

    def _changed(self, screen: Screen[object]) -> None:
        """What changed the keys is painted first; told twice of one change, the line is worked out once."""
        if not self._due:
            self._due = True
            self.call_after_refresh(self._catch_up)

    def _catch_up(self) -> None:
        self._due = False
        self.repaint()
