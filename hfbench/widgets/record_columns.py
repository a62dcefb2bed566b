"""Columns of a table: which are shown at a width, and how wide, so that no number is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

GAP = 2


FLOOR = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. Widths count cells.

    The column with the highest `priority` number is dropped first, those of priority 0 only when nothing else helps.
    A flexible column holds text: it wants `min` cells, and is cut further before a column of priority 0 is dropped.
    Any other column is shown whole or not at all.
    """

    key: str
    title: str
    align: Literal["left", "right"] = "left"
    priority: int = 0
    flexible: bool = False
    min: int = 0
    max: int = 60
    middle: bool = False
    """Cut in the middle, as paths and tensor names want."""

    def need(self, wanted: int, *, cramped: bool = False) -> int:
        """Cells without which the column is not shown; its title and the sort arrow always fit."""
        title = len(self.title) + 1
        if not self.flexible:
            return max(wanted, self.min, title)
        return max(title, min(FLOOR if cramped else max(self.min, FLOOR), wanted))


@dataclass(frozen=True, slots=True)
class Placed:
    """A column that is shown, at its width in cells."""

    column: Column
    width: int


Entry = tuple[Column, int, int]
"""A column, its cells, and the widest of its contents."""


def lay_out(columns: Sequence[Column], wanted: Sequence[int], width: int, *, gap: int = GAP) -> tuple[Placed, ...]:
    """The columns that fit into `width` cells, in their order; `wanted` is the widest content of each.

    Rigid columns get what their content wants. Flexible ones get their least, then take what is left in turn.
    """
    kept = [(column, column.need(want), want) for column, want in zip(columns, wanted, strict=True)]
    while _spare(kept, width, gap) < 0 and any(column.priority for column, _, _ in kept):
        kept.remove(_first_to_go(kept))
    if _spare(kept, width, gap) < 0:
        kept = [(column, column.need(want, cramped=True), want) for column, _, want in kept]
    while len(kept) > 1 and _spare(kept, width, gap) < 0:
        kept.remove(_first_to_go(kept))
    if _spare(kept, width, gap) < 0:
        column = kept[0][0]
        return (Placed(column, width),) if column.flexible and width > 0 else ()
    return tuple(_shared(kept, _spare(kept, width, gap)))


def _shared(kept: Sequence[Entry], spare: int) -> Iterator[Placed]:
    for column, size, want in kept:
        more = max(0, min(spare, min(want, column.max) - size)) if column.flexible else 0
        spare -= more
        yield Placed(column, size + more)


def _first_to_go(kept: Sequence[Entry]) -> Entry:
    return max(reversed(kept), key=lambda entry: entry[0].priority)


def _spare(kept: Sequence[Entry], width: int, gap: int) -> int:
    return width - sum(size for _, size, _ in kept) - gap * max(0, len(kept) - 1)
