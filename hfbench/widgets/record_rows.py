"""Rows of a record table: filtered, ordered, and found again by key when they are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hfbench.text import printable
from hfbench.widgets.cells import width_of
from hfbench.widgets.glyphs import State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.tensor_filter import Query

MARK = "+"
"""Stands before the name of a row that is marked."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row: texts by column key. `order` holds what a column is sorted by where its text does not say it."""

    key: str
    cells: Mapping[str, str]
    states: Mapping[str, State] = field(default_factory=dict)
    order: Mapping[str, Any] = field(default_factory=dict)


def toggled(marked: Sequence[str], key: str) -> list[str]:
    """The marks with that of a record set, behind the others, or taken away."""
    return [each for each in marked if each != key] if key in marked else [*marked, key]


class RecordRows:
    """The records that match the filter, in order. Rows without a value to sort by come last."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.query = Query.parse("")
        self.sort: str | None = None
        self.descending = False
        self.widths: tuple[int, ...] = tuple(0 for _ in columns)
        self._all: list[Record] = []
        self._texts: list[str] = []
        self._shown: list[Record] = []
        self._index: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Records there are."""
        return len(self._all)

    def __len__(self) -> int:
        return len(self._shown)

    def __getitem__(self, index: int) -> Record:
        return self._shown[index]

    def find(self, key: str) -> int | None:
        """Where the record of that key is shown."""
        return self._index.get(key)

    def replace(self, records: Sequence[Record]) -> None:
        """Show other records; their texts are made safe to paint here."""
        self._all = [
            Record(r.key, {k: printable(text) for k, text in r.cells.items()}, r.states, r.order) for r in records
        ]
        keys = [column.key for column in self.columns]
        self._texts = [self._text(record) for record in self._all]
        self.widths = tuple(
            max((width_of(record.cells.get(key, "")) for record in self._all), default=0) for key in keys
        )
        self._arrange()

    def update(self, records: Sequence[Record]) -> None:
        """Other texts of some records that are there; columns grow with them, and shrink with the next `replace`."""
        places = {record.key: index for index, record in enumerate(self._all)} if records else {}
        for record in records:
            if (at := places.get(record.key)) is not None:
                cells = {key: printable(text) for key, text in record.cells.items()}
                self._all[at] = Record(record.key, cells, record.states, record.order)
                self._texts[at] = self._text(self._all[at])
                self.widths = tuple(
                    max(width, width_of(cells.get(column.key, "")))
                    for width, column in zip(self.widths, self.columns, strict=True)
                )
        self._arrange()

    def _text(self, record: Record) -> str:
        """What is searched by the filter."""
        return "\n".join(record.cells.get(column.key, "") for column in self.columns)

    def set_filter(self, text: str) -> None:
        """Show the records in whose texts every word occurs."""
        self.query = Query.parse(text)
        self._arrange()

    def set_order(self, sort: str | None, descending: bool) -> None:
        """Order by a column; None is the order given."""
        self.sort, self.descending = sort, descending
        self._arrange()

    def next_order(self) -> None:
        """The order given, then each column upwards and downwards in turn."""
        orders: list[tuple[str | None, bool]] = [(None, False)]
        orders += [(column.key, down) for column in self.columns for down in (False, True)]
        at = orders.index((self.sort, self.descending)) if (self.sort, self.descending) in orders else -1
        self.set_order(*orders[(at + 1) % len(orders)])

    def _arrange(self) -> None:
        shown = [record for record, text in zip(self._all, self._texts, strict=True) if self.query.matches(text)]
        if self.sort is not None:
            valued = [(self._value(record), record) for record in shown]
            known = [(value, record) for value, record in valued if value is not None]
            known.sort(key=lambda entry: entry[0], reverse=self.descending)
            shown = [record for _, record in known] + [record for value, record in valued if value is None]
        self._shown = shown
        self._index = {record.key: index for index, record in enumerate(shown)}

    def _value(self, record: Record) -> tuple[int, Any] | None:
        key = self.sort or ""
        value = record.order.get(key, record.cells.get(key) or None)
        if value is None or value != value:
            return None
        return (1, value.casefold()) if isinstance(value, str) else (0, value)
