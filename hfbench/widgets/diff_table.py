"""A list of differences of any length: status, name, what each side has, and how far values are apart."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from hfbench.text import printable
from hfbench.widgets.differences import METRICS, Differences
from hfbench.widgets.glyphs import State
from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK, Cell
from hfbench.widgets.record_columns import Column, Placed, lay_out
from hfbench.widgets.tensor_order import Sort
from hfbench.widgets.tensor_rows import Line
from hfbench.widgets.tensor_table import TensorTable

GROUPS_FROM = 200
"""Rows from which a table begins gathered: nobody reads as many."""

STATES: dict[str, State] = {
    "removed": "error",
    "added": "ok",
    "unread": "unknown",
    "shape": "error",
    "dtype": "warn",
    "differ": "error",
    "unknown": "unknown",
    "close": "warn",
    "renamed": "muted",
    "equal": "muted",
}

STATUS = Column("status", "Status")
NAME = Column("name", "Name", flexible=True, min=24, max=400, middle=True)
COUNT = Column("count", "Count", align="right")
A, B = Column("a", "A", priority=2, max=40), Column("b", "B", priority=1, max=40)
MOST = Column("max_abs", "max |a-b|", align="right")
RELATIVE = Column("relative_l2", "rel L2", align="right", priority=3)
COSINE = Column("cosine", "cosine", align="right", priority=4)
MEAN = Column("mean_abs", "mean", align="right", priority=5)

METRIC_CELLS = 9


class DiffTable(TensorTable):
    """Differences of tensors, gathered by names that differ only in numbers when there are many."""

    help = Help(
        "Differences of tensors",
        "`/` filters by name: words must all occur, `*` stands for anything, capitals mind the case.\n"
        "`s` shows one status after the other. `g` gathers tensors that differ only in layer and expert numbers.\n"
        "`enter` unfolds a group or tells all of a tensor. `o` walks through the orders, `b` puts the biggest first.\n"
        "The first order has the weightiest differences on top; of a group its first member's figures are shown.",
    )

    BINDINGS = [
        Binding("s", "status", "status"),
        Binding("b", "biggest", "biggest", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.found: Differences | None = None
        self.status = ""
        """The status that is shown, empty for all."""
        self._first = 0
        self._sides = (0, 0)

    def show_differences(self, found: Differences) -> None:
        """Show these; filter and order stay."""
        self.found = found
        self.status = self.status if self.status in found.spans else ""
        self.rows.grouped = self.rows.grouped or len(found.columns) >= GROUPS_FROM
        self._show_part()

    def action_status(self) -> None:
        """The next status that there is, and after the last all of them."""
        if self.found:
            known = ["", *self.found.spans]
            self.status = known[(known.index(self.status) + 1) % len(known)]
            self._show_part()

    @property
    def row_at_cursor(self) -> int | None:
        """The row of the differences that the cursor is on, of a group its first; None when there is none."""
        return self._first + self.rows[self.cursor].row if self.found and self.row_count() else None

    def placed(self) -> tuple[Placed, ...]:
        """Columns for the present width; metrics when there are some."""
        width, rows = self.line_width - MARK, self.rows
        if self._placed is None or self._placed[:2] != (rows.changes, width):
            self._placed = rows.changes, width, lay_out(*self._columns(), width)
        return self._placed[2]

    def row_cells(self, row: int) -> Sequence[Cell]:
        """Texts of a line."""
        line = self.rows[row]
        texts = self._texts(line)
        state = STATES.get(line.dtype.split()[0], "")
        return [
            (self.cell_text(texts.get(p.column.key, ""), p), state if p.column is STATUS else "") for p in self.placed()
        ]

    def sort_mark(self) -> tuple[str, bool] | None:
        """The arrow over the names; none in the order of weight or size."""
        return ("name", self.rows.descending) if self.rows.sort is Sort.NAME else None

    def header_note(self) -> str:
        """The order by size has no column."""
        if self.rows.busy:
            return "working"
        return ("biggest first" if self.rows.descending else "smallest first") if self.rows.sort is Sort.SIZE else ""

    def _show_part(self) -> None:
        if self.found:
            columns, self._first = self.found.part(self.status)
            self._sides = self.found.widths()
            self.show(columns)

    def _columns(self) -> tuple[list[Column], list[int]]:
        found, widths = self.found, self.rows.widths
        columns, wanted = [STATUS, NAME], [widths.dtype, widths.name + 2]
        if self.rows.grouped:
            columns, wanted = [*columns, COUNT], [*wanted, len(f"{self.rows.total:,}")]
        columns, wanted = [*columns, A, B], [*wanted, *self._sides]
        if found and found.metrics:
            columns, wanted = [*columns, MOST, RELATIVE, COSINE, MEAN], [*wanted, *(METRIC_CELLS,) * 4]
        return columns, wanted

    def _texts(self, line: Line) -> dict[str, str]:
        assert self.found
        many = line.count > 1
        mark = "" if not many else "- " if line.unfolded else "+ "
        a, b = self.found.sides[line.shape[0]]
        row = self._first + line.row
        metrics = {key: metric_text(key, self.found.metric(key, row)) for key in METRICS}
        if row in self.found.nonfinite:
            metrics["max_abs"] = "NaN/Inf"  # how far apart the finite ones are would hide that these differ
        return {
            "status": line.dtype,
            "name": ("  " if line.inside else mark) + printable(line.name),
            "count": f"{line.count:,}" if many else "",
            "a": a,
            "b": b,
            **metrics,
        }


def metric_text(key: str, value: float | None) -> str:
    """A metric, never longer than its column."""
    return "" if value is None else f"{value:.6f}" if key == "cosine" else f"{value:.3g}"
