"""The model under the cursor of the list, in a few lines below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hfbench.screens.model_list import detail_lines
from hfbench.screens.model_loads import Loads
from hfbench.screens.model_look import Look
from hfbench.widgets.cells import Span
from hfbench.widgets.painted import Painted

if TYPE_CHECKING:
    from hfbench.jobs.history import JobRow


class ModelDetails(Painted):
    """The model under the cursor in four lines."""

    DEFAULT_CSS = "ModelDetails { height: 5; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look: Look | None = None
        self.jobs: tuple[JobRow, ...] = ()
        self.loads: Loads | None = None

    def show(self, look: Look | None, jobs: tuple[JobRow, ...], loads: Loads | None = None) -> None:
        """Show this one."""
        self.look, self.jobs, self.loads = look, jobs, loads
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """A rule and the lines."""
        if self.look is None:
            return []
        told = detail_lines(self.look, self.jobs, width, self.glyphs, self.loads)
        return [[(self.glyphs.rule * width, "muted")], *told]
