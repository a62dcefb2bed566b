"""The regions of a sweep's page: the cells as a table, the front with its points, and what holds them."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize

from hfbench.widgets.cells import Span, clip
from hfbench.widgets.front_lines import Front, front_lines
from hfbench.widgets.heat_grid import HeatGrid
from hfbench.widgets.help import Help
from hfbench.widgets.list_and_detail import WIDE
from hfbench.widgets.painted import Painted
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.span_view import SpanView

MOST_FRONT = 5
"""Lines of the table below the drawing at most, with its head."""
LEAST_DETAIL = 4
"""Lines kept for the cell under the cursor below the map, the table or the front."""


class CellTable(RecordTable):
    """Cells in the order they run."""

    help = Help(
        "Cells",
        "A row a cell, with its values, its state and the chosen metric. `space` marks one, `=` compares those that "
        "are marked. `enter` opens its job, `/` filters, `o` walks through the orders, `m` chooses the metric.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class FrontTable(RecordTable):
    """Cells that no other beats in both metrics."""

    help = Help(
        "Front",
        "Cells that no other cell beats in both metrics, by growing latency: `*` in the plot, `@` the one under the "
        "cursor, `o` those that are beaten. `m` chooses the latency, `t` the throughput, `enter` opens the job.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class FrontPlot(Painted):
    """Every cell by both metrics."""

    DEFAULT_CSS = "FrontPlot { height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.front: Front | None = None
        self.why = ""
        self.here: int | None = None

    def show(self, front: Front | None, why: str, here: int | None) -> None:
        """Draw these points, or say why there is none."""
        self.front, self.why, self.here = front, why, here
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The drawing at this size."""
        if self.front is None:
            return [[(clip(self.why, width, ellipsis=self.glyphs.ellipsis), "muted")]]
        return front_lines(self.front, self.here, width, height, self.glyphs)


class FrontPane(SeeThrough, Container):
    """The plot above its table."""

    DEFAULT_CSS = """
    FrontPane {
        height: 1fr; layout: vertical;
        & > FrontTable { height: 2; margin-top: 1; }
    }
    """

    def compose(self) -> ComposeResult:
        """The points and the rows of the front."""
        yield FrontPlot()
        yield FrontTable((Column("cell", "Cell"),), empty="no cell has both metrics yet")

    def share_room(self) -> None:
        """Give the table the lines its rows take, and the drawing all others."""
        table = self.query_one(FrontTable)
        lines = 1 + max(1, min(MOST_FRONT - 1, table.total))
        if table.styles.height is None or table.styles.height.value != lines:
            table.styles.height = lines


class SweepRoom(SeeThrough, Container):
    """One of the three views, and below or beside it the cell under the cursor."""

    DEFAULT_CSS = """
    SweepRoom {
        height: 1fr; layout: vertical;
        & > CellTable { display: none; height: 2fr; }
        & > FrontPane { display: none; height: 1fr; }
        & > SpanView { height: 1fr; min-height: 4; margin-top: 1; }
        &.-cells > CellTable, &.-front > FrontPane { display: block; }
        &.-cells > HeatGrid, &.-front > HeatGrid { display: none; }
        &.-front > SpanView { display: none; }
        &.-wide > SpanView { display: block; }
        &.-wide { layout: horizontal; }
        &.-wide > HeatGrid, &.-wide > CellTable, &.-wide > FrontPane { width: 62%; }
        &.-wide > CellTable, &.-wide > FrontPane { height: 1fr; }
        &.-wide > SpanView { height: 1fr; width: 1fr; margin: 0 0 0 3; }
    }
    """

    def compose(self) -> ComposeResult:
        """All views; a class says which one is shown."""
        yield HeatGrid()
        yield CellTable((Column("cell", "Cell"),), empty="no cell was planned yet")
        yield FrontPane()
        yield SpanView()

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")

    @property
    def map_room(self) -> int:
        """Lines the map may take."""
        return self.size.height if self.has_class("-wide") else max(3, self.size.height - LEAST_DETAIL - 1)
