"""The tensors: filtered, grouped, ordered by size, and one of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from hfbench.models.columns import TensorColumns, TensorInfo
from hfbench.screens.model_tabs.base import Detail, DetailTab
from hfbench.screens.model_view import ModelView
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.tensor_table import TensorTable


class TensorsTab(DetailTab):
    """All tensors of the model."""

    title: ClassVar[str] = "Tensors"
    keys_to = TensorTable

    DEFAULT_CSS = """
    TensorsTab {
        & > #filter-line { height: auto; }
        & #count { width: auto; height: 1; color: $text-muted; padding: 0 0 0 2; dock: right; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns: TensorColumns | None = None

    def compose(self) -> ComposeResult:
        """Filter and count on one line, then the table, then one tensor."""
        with Horizontal(id="filter-line"):
            yield FilterBar()
            yield Static(id="count", markup=False)
        yield TensorTable()
        yield Detail()

    def on_mount(self) -> None:
        """Follow the cursor."""
        self.watch(self.table, "cursor", self.follow_detail, init=False)

    @property
    def table(self) -> TensorTable:
        """The table of tensors."""
        return self.query_one(TensorTable)

    def show(self, view: ModelView) -> None:
        """Take in the tensors that came since; the columns are never copied."""
        table = self.table
        table.empty = "reading the headers ..." if view.reading else "no tensors could be read; the overview says why"
        if view.columns is self._columns:
            table.grow()
        else:
            self._columns = view.columns
            table.show(view.columns)
        self._count()

    def show_biggest(self) -> None:
        """The largest tensors first, without a filter in their way."""
        self.query_one(FilterBar).close(keep=False)
        self.table.action_biggest()

    def facts(self) -> Sequence[Fact]:
        """The tensor under the cursor."""
        tensor = self.table.current
        return tensor_facts(tensor) if tensor else ()

    def copied(self) -> str:
        """Its name."""
        tensor = self.table.current
        return tensor.name if tensor else ""

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.table.filter = message.text

    @on(TensorTable.Chosen)
    def _choose(self) -> None:
        self.toggle_detail()

    @on(TensorTable.RowsChanged)
    def _changed(self) -> None:
        self._count()
        self.follow_detail()

    def _count(self) -> None:
        """What matches the filter; of all tensors the title line tells."""
        rows, count = self.table.rows, self.query_one("#count", Static)
        count.display = bool(self.table.filter)
        if count.display:
            count.update(f"{rows.shown:,} of {rows.total:,} match  {show_bytes(rows.bytes)}")


def tensor_facts(tensor: TensorInfo) -> list[Fact]:
    """One tensor in full; offsets count from the start of its file's data."""
    shape = " x ".join(f"{size:,}" for size in tensor.shape) or "scalar"
    return [
        Fact("name", tensor.name),
        Fact("dtype", tensor.dtype),
        Fact("shape", f"{shape}  ({tensor.elements:,} elements)"),
        Fact("bytes", f"{tensor.bytes:,}  ({show_bytes(tensor.bytes)})"),
        Fact("data", f"bytes {tensor.begin:,} to {tensor.end:,} of the data in {tensor.shard}"),
    ]
