"""The line that says how far a job is."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.widgets.cells import Span
from hfbench.widgets.painted import Painted
from hfbench.widgets.progress_text import Phase, phases_line


class ProgressLine(Painted):
    """Phases done, the one under way with its bar, and those to come."""

    DEFAULT_CSS = "ProgressLine { height: 1; }"

    def __init__(self, phases: Sequence[Phase] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.phases = tuple(phases)

    def show(self, phases: Sequence[Phase]) -> None:
        """Show these phases."""
        self.phases = tuple(phases)
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line."""
        return [phases_line(self.phases, width, self.glyphs)]
