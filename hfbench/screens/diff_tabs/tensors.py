"""The tensors that differ, filtered, gathered and ordered, and one of them in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.diff_view import DiffView
from hfbench.screens.model_tabs.base import Detail
from hfbench.widgets.diff_table import DiffTable
from hfbench.widgets.differences import METRICS, Differences
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.tensor_table import TensorTable

LABELS = {"max_abs": "max |a-b|", "mean_abs": "mean |a-b|", "relative_l2": "||a-b|| / ||a||", "cosine": "cosine"}


class DiffTensorsTab(DiffTab):
    """Every tensor that differs, and with values every tensor that was compared."""

    title: ClassVar[str] = "Tensors"
    section: ClassVar[str] = "tensors"
    keys_to = DiffTable

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_detail", "close", show=False, id="diff.close-detail"),
    ]

    DEFAULT_CSS = """
    DiffTensorsTab {
        & > #filter-line { height: auto; }
        &.-counting > #filter-line { min-height: 1; }
        & #count { width: auto; height: 1; color: $text-muted; padding: 0 0 0 2; dock: right; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: Differences | None = None

    def compose(self) -> ComposeResult:
        """Filter and count on one line, then the table, then one tensor."""
        with Horizontal(id="filter-line"):
            yield FilterBar()
            yield Static(id="count", markup=False)
        yield DiffTable()
        yield Detail()

    def on_mount(self) -> None:
        """Follow the cursor."""
        self.watch(self.table, "cursor", self._follow, init=False)

    @property
    def table(self) -> DiffTable:
        """The table."""
        return self.query_one(DiffTable)

    @property
    def at_rest(self) -> bool:
        """False while the table is put in order."""
        return not self.table.rows.busy

    def show(self, view: DiffView) -> None:
        """Show the rows; the same ones again change nothing."""
        self.table.empty = (
            "comparing ..."
            if view.comparing
            else "no tensor differs"
            + ("" if view.result is None or view.result.values is not None else " by name, shape and dtype")
        )
        if view.differences is not None and view.differences is not self._found:
            self._found = view.differences
            self.table.show_differences(view.differences)
        self._count()

    def copied(self) -> str:
        """The name under the cursor."""
        row = self.table.row_at_cursor
        return self._found.columns.names[row] if self._found and row is not None else ""

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.table.filter = message.text

    @on(TensorTable.Chosen)
    def _choose(self) -> None:
        detail = self.query_one(Detail)
        if detail.display:
            detail.display = False
        else:
            detail.open(list(self._facts()))

    @on(TensorTable.RowsChanged)
    def _changed(self) -> None:
        self._count()
        self._follow()

    def _follow(self) -> None:
        detail = self.query_one(Detail)
        if detail.display:
            detail.open(list(self._facts()))

    def _facts(self) -> Iterator[Fact]:
        row = self.table.row_at_cursor
        if self._found and row is not None:
            yield from difference_facts(self._found, row)

    def _count(self) -> None:
        """Which status is shown, and what matches the filter."""
        table, count = self.table, self.query_one("#count", Static)
        told = [f"{table.rows.shown:,} of {table.rows.total:,} match"] if table.filter else []
        told += [f"only: {table.status}"] if table.status else []
        self.set_class(bool(told), "-counting")
        count.display = bool(told)
        count.update("  ".join(told))

    def action_close_detail(self) -> None:
        """Close the details."""
        self.query_one(Detail).display = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`escape` is the screen's while no details are open."""
        return action != "close_detail" or (self.is_mounted and self.query_one(Detail).display)


def difference_facts(found: Differences, row: int) -> Iterator[Fact]:
    """One row in full."""
    tensor, rename = found.columns[row], found.renames.get(row)
    a, b = found.sides[tensor.shape[0]]
    yield Fact("name", tensor.name)
    if rename:
        yield Fact("in B", f"{rename[0]}  ({found.rules[rename[1]]})")
    yield Fact("status", tensor.dtype)
    if a or not rename:
        yield Fact("A, B", f"{a or 'not there'}  |  {b or 'not there'}")
    told = [f"{LABELS[key]} {value:.9g}" for key in METRICS if (value := found.metric(key, row)) is not None]
    if told:
        yield Fact("values", ",  ".join(told))
    if count := found.nonfinite.get(row):
        yield Fact("not finite", f"{count:,} places where one side is NaN or infinite", "warn")
    if note := found.notes.get(row):
        yield Fact("note", note)
