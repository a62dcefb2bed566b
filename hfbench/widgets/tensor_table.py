"""A list of tensors of any length, painted a line at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer

from hfbench.models.columns import TensorColumns, TensorInfo
from hfbench.widgets.cells import clip_name
from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK, Cell, LineTable
from hfbench.widgets.record_columns import Placed
from hfbench.widgets.tensor_lines import SORTED_COLUMN, cell_texts, columns_of
from hfbench.widgets.tensor_order import Sort
from hfbench.widgets.tensor_rows import TensorRows

AT_ONCE = 0.004
"""Seconds a key may work before it is painted; the rest is left to the timer."""

SLICE_SECONDS, SLICE_EVERY = 0.004, 0.006
"""Seconds of work between two chances to take a key, and seconds from one such turn to the next."""

TOLD_EVERY = 0.2
"""Seconds between two counts of what matches, while a search goes on."""


class TensorTable(LineTable):
    """Tensors, or groups of tensors that differ only in numbers, with filter and order."""

    help = Help(
        "Tensor table",
        "`/` filters: words must all occur, `*` stands for anything, capitals mind the case.\n"
        "`g` gathers tensors that differ only in layer and expert numbers, and lists each again.\n"
        "`enter` unfolds a group or opens a tensor. `o` walks through the orders, `b` puts the biggest first.\n"
        "The bytes column counts a group as number x bytes of one.",
    )

    BINDINGS = [
        Binding("g", "group", "group"),
        Binding("o", "order", "order"),
        Binding("b", "biggest", "biggest"),
    ]

    @dataclass
    class Chosen(Message):
        """`enter` on a tensor."""

        table: TensorTable
        tensor: TensorInfo

        @property
        def control(self) -> TensorTable:
            """The table it came from."""
            return self.table

    @dataclass
    class RowsChanged(Message):
        """What matches the filter changed: tensors shown, tensors in all, bytes of those shown."""

        table: TensorTable
        shown: int
        total: int
        bytes: int
        busy: bool

        @property
        def control(self) -> TensorTable:
            """The table it came from."""
            return self.table

        def can_replace(self, message: Message) -> bool:
            """Only the latest numbers matter."""
            return isinstance(message, TensorTable.RowsChanged) and message.table is self.table

    def __init__(self, columns: TensorColumns | None = None, *, grouped: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows = TensorRows(columns, grouped=grouped)
        self.empty = ""
        """What to say when there are no tensors and no filter."""
        self._timer: Timer | None = None
        self._placed: tuple[int, int, tuple[Placed, ...]] | None = None
        self._seen: tuple[int, bool, int] | None = None
        self._told = 0.0

    @property
    def filter(self) -> str:
        """The text rows must match; see TensorRows.set_filter."""
        return self.rows.query.text

    @filter.setter
    def filter(self, text: str) -> None:
        if text != self.rows.query.text:
            self.rows.set_filter(text)
            self._work_on(0, to_top=True)  # the letter itself is to be painted first

    @property
    def current(self) -> TensorInfo | None:
        """The tensor under the cursor; of a group, its first that is shown."""
        return self.rows.tensor(self.cursor) if self.row_count() else None

    def show(self, columns: TensorColumns) -> None:
        """Show other columns; filter, order and grouping stay."""
        before = self.rows
        self.rows = TensorRows(columns, grouped=before.grouped)
        self._seen = self._placed = None
        self.rows.sort, self.rows.descending = before.sort, before.descending
        self.rows.set_filter(before.query.text)
        self._work_on(to_top=True)

    def grow(self) -> None:
        """Take in rows added to the columns; cheap enough to call after every shard."""
        self.rows.grow()
        self._work_on(0)

    def action_group(self) -> None:
        """Gather or list each."""
        self.rows.set_grouped(not self.rows.grouped)
        self._work_on(to_top=True)

    def action_order(self) -> None:
        """The next order."""
        self.rows.next_order()
        self._work_on(to_top=True)

    def action_biggest(self) -> None:
        """Most bytes first."""
        self.rows.set_order(Sort.SIZE, True)
        self._work_on(to_top=True)

    def on_mount(self) -> None:
        """Start the timer that carries long work on between keys."""
        self._timer = self.set_interval(SLICE_EVERY, self._tick, pause=True)
        self._work_on()

    def row_count(self) -> int:
        """Lines there are."""
        return len(self.rows)

    def placed(self) -> tuple[Placed, ...]:
        """Columns for the present width."""
        width = self.line_width - MARK
        if self._placed is None or self._placed[:2] != (self.rows.changes, width):
            self._placed = self.rows.changes, width, columns_of(self.rows, width)
        return self._placed[2]

    def row_cells(self, row: int) -> Sequence[Cell]:
        """Texts of a line."""
        texts = cell_texts(self.rows[row], times=self.glyphs.times)
        return [(self.cell_text(texts[place.column.key], place), "") for place in self.placed()]

    def cell_text(self, text: str, place: Placed) -> str:
        """A cell's text; a name is cut so that its numbers stay."""
        return clip_name(text, place.width, ellipsis=self.glyphs.ellipsis) if place.column.key == "name" else text

    def sort_mark(self) -> tuple[str, bool] | None:
        """The arrow; none in file order."""
        key = SORTED_COLUMN.get(self.rows.sort)
        return (key, self.rows.descending) if key else None

    def header_note(self) -> str:
        """Says so while an answer is incomplete."""
        return "working" if self.rows.busy else ""

    def choose(self, row: int) -> None:
        """Unfold a group, open a tensor."""
        if self.rows.toggle(row):
            self._work_on()
        else:
            self.post_message(self.Chosen(self, self.rows.tensor(row)))

    def empty_text(self) -> str:
        """Why there is nothing to see."""
        if self.rows.busy:
            return "looking ..."
        if self.rows.total and self.rows.query.terms:
            return "no tensor matches the filter; / changes it, escape clears it"
        return self.empty or "no tensors here"

    def _tick(self) -> None:
        if getattr(self.app, "answering", False):
            return  # what a key brought is on its way to the terminal, by a thread that needs the interpreter too
        self.rows.step(SLICE_SECONDS)
        self._show_progress()

    def _work_on(self, seconds: float = AT_ONCE, *, to_top: bool = False) -> None:
        self.rows.step(seconds)
        if to_top:
            self.cursor = 0
            self.show_cursor()
        self._show_progress()

    def _show_progress(self) -> None:
        rows = self.rows
        if self._timer is not None:
            self._timer.resume() if rows.busy else self._timer.pause()
        now = (rows.changes, rows.busy, rows.shown)
        before = self._seen
        if now == before or (before and now[:2] == before[:2] and rows.busy and monotonic() - self._told < TOLD_EVERY):
            return
        self._seen, self._told = now, monotonic()
        if before is None or before[0] != rows.changes:
            self.rows_changed()
        else:
            self.rows_added()
            self.refresh_header()
        self.post_message(self.RowsChanged(self, rows.shown, rows.total, rows.bytes, rows.busy))
