"""The title line of every screen."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.widgets.breadcrumb_text import breadcrumb
from hfbench.widgets.cells import Span
from hfbench.widgets.painted import Painted


class Breadcrumb(Painted):
    """Where the user is, and at the right what holds everywhere: host, devices, jobs."""

    DEFAULT_CSS = "Breadcrumb { height: 1; dock: top; background: $panel; padding: 0 1; }"

    def __init__(self, trail: Sequence[str] = (), status: Sequence[str] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trail, self.status = tuple(trail), tuple(status)

    def show(self, trail: Sequence[str] | None = None, status: Sequence[str] | None = None) -> None:
        """Show another trail, another status, or both."""
        self.trail = self.trail if trail is None else tuple(trail)
        self.status = self.status if status is None else tuple(status)
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line."""
        return [breadcrumb(self.trail, self.status, width, self.glyphs)]
