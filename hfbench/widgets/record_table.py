"""A table of records, such as jobs, models or files, whose cursor stays with its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.binding import Binding
from textual.message import Message

from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK, Cell, LineTable
from hfbench.widgets.record_columns import Column, Placed, lay_out
from hfbench.widgets.record_rows import Record, RecordRows


class RecordTable(LineTable):
    """Some thousands of records in declared columns.

    `empty` is what a table without records says; it names the key to press.
    """

    help = Help(
        "Table",
        "`/` filters: every word must occur in the row. `o` walks through the orders.\n"
        "`enter` opens the row. Narrow terminals show fewer columns; numbers are never cut.",
    )

    BINDINGS = [Binding("o", "order", "order")]

    @dataclass
    class Chosen(Message):
        """`enter` on a row."""

        table: RecordTable
        key: str

        @property
        def control(self) -> RecordTable:
            """The table it came from."""
            return self.table

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row; None when there is none."""

        table: RecordTable
        key: str | None

        @property
        def control(self) -> RecordTable:
            """The table it came from."""
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        empty: str = "",
        unmatched: str = "no row matches the filter; / changes it, escape clears it",
        sort: str | None = None,
        descending: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.rows = RecordRows(columns)
        self.rows.set_order(sort, descending)
        self.empty, self.unmatched = empty, unmatched
        self._last: str | None = None

    @property
    def shown(self) -> int:
        """Records that match the filter."""
        return len(self.rows)

    @property
    def total(self) -> int:
        """Records in all."""
        return self.rows.total

    @property
    def current(self) -> str | None:
        """The key of the record under the cursor."""
        return self.rows[self.cursor].key if 0 <= self.cursor < len(self.rows) else None

    @property
    def filter(self) -> str:
        """Words that must occur in a row."""
        return self.rows.query.text

    @filter.setter
    def filter(self, text: str) -> None:
        self._changing(lambda: self.rows.set_filter(text))

    def show(self, records: Sequence[Record]) -> None:
        """Show these records; the cursor stays on its key."""
        self._changing(lambda: self.rows.replace(records))

    def update(self, records: Sequence[Record]) -> None:
        """Show other texts of some of the records."""
        self._changing(lambda: self.rows.update(records))

    @property
    def in_view(self) -> list[str]:
        """The keys of the records on the screen."""
        top = int(self.scroll_offset.y)
        return [self.rows[row].key for row in range(top, min(top + self.size.height, len(self.rows)))]

    def take_columns(self, columns: Sequence[Column]) -> None:
        """Show other columns, as soon as records come; an order by one that is gone is the order given."""
        if self.rows.columns != tuple(columns):
            before, self.rows = self.rows, RecordRows(columns)
            kept = before.sort if any(column.key == before.sort for column in columns) else None
            self.rows.set_order(kept, before.descending if kept else False)
            self.rows.set_filter(before.query.text)

    def sort_by(self, column: str | None, descending: bool = False) -> None:
        """Order by a column's key; None is the order given."""
        self._changing(lambda: self.rows.set_order(column, descending))

    def move_to(self, key: str) -> bool:
        """Put the cursor on a record; False when it is not shown."""
        row = self.rows.find(key)
        if row is not None:
            self.cursor = row
        return row is not None

    def action_order(self) -> None:
        """The next order."""
        self._changing(self.rows.next_order)

    def row_count(self) -> int:
        """Records shown."""
        return len(self.rows)

    def placed(self) -> tuple[Placed, ...]:
        """Columns for the present width."""
        return lay_out(self.rows.columns, self.rows.widths, self.line_width - MARK)

    def row_cells(self, row: int) -> Sequence[Cell]:
        """Texts and states of a record."""
        record = self.rows[row]
        keys = [place.column.key for place in self.placed()]
        return [(record.cells.get(key, ""), record.states.get(key, "")) for key in keys]

    def sort_mark(self) -> tuple[str, bool] | None:
        """The arrow; none in the order given."""
        return (self.rows.sort, self.rows.descending) if self.rows.sort else None

    def choose(self, row: int) -> None:
        """Tell which record."""
        self.post_message(self.Chosen(self, self.rows[row].key))

    def empty_text(self) -> str:
        """Why there is nothing to see."""
        if self.total:
            return self.unmatched
        return self.empty or "nothing here yet"

    def watch_cursor(self, before: int, now: int) -> None:
        """Follow, and tell."""
        super().watch_cursor(before, now)
        self._tell()

    def _changing(self, change: Callable[[], None]) -> None:
        key = self.current
        change()
        row = self.rows.find(key) if key is not None else None
        self.rows_changed()
        if row is not None:
            self.cursor = row
            self.show_cursor()
        self._tell()

    def _tell(self) -> None:
        if self.current != self._last:
            self._last = self.current
            self.post_message(self.Highlighted(self, self.current))
