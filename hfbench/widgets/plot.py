"""A plot of one series in block characters; cheap enough to repaint while a job runs."""

from __future__ import annotations

from hfbench.widgets.cells import Span
from hfbench.widgets.glyphs import ASCII
from hfbench.widgets.painted import Painted
from hfbench.widgets.plot_lines import Series, plot


class Plot(Painted):
    """Give it a height in CSS. Lines that did not change are not sent again."""

    DEFAULT_CSS = "Plot { height: 6; }"

    def __init__(self, series: Series | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.series = series or Series()

    def show(self, series: Series) -> None:
        """Draw this series."""
        self.series = series
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The drawing at this size."""
        return plot(self.series, width, height, ascii=self.glyphs == ASCII)
