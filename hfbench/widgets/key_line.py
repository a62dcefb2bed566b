"""The bottom line: what can be done here."""

from __future__ import annotations

from textual.screen import Screen

from hfbench.widgets.active_keys import active_keys
from hfbench.widgets.cells import Span
from hfbench.widgets.key_fit import GAP, Key, fit_keys
from hfbench.widgets.painted import Painted


class KeyLine(Painted):
    """Keys of the focused widget, then of the screen, then of the app; `? help  q quit` always stand at the end."""

    DEFAULT_CSS = "KeyLine { height: 1; dock: bottom; background: $panel; padding: 0 1; }"

    def on_mount(self) -> None:
        """Follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line."""
        keys = [Key(active.keys[0], active.label) for active in active_keys(self.screen) if active.shown]
        spans: list[Span] = []
        for key in fit_keys(keys, width):
            spans += [(" " * GAP if spans else "", ""), (key.key, "key"), (f" {key.label}", "")]
        return [spans]

    def _changed(self, screen: Screen[object]) -> None:
        self.repaint()
