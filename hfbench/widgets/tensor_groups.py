"""Tensors whose names differ only in layer and expert numbers, gathered into groups."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

from hfbench.models.columns import Shape, TensorColumns
from hfbench.models.patterns import fold

FOLD = 4_000
"""Names folded between two chances to paint: about 10 ms."""

Key = tuple[str, int, int, int]
"""Pattern, dtype, shape and bytes: the members of a group are equal in all four."""


@dataclass(slots=True)
class TensorGroups:
    """The group of every row, by group number in order of first appearance."""

    columns: TensorColumns
    patterns: list[str] = field(default_factory=list)
    firsts: array[int] = field(default_factory=lambda: array("I"))
    ids: array[int] = field(default_factory=lambda: array("I"))
    totals: Counter[int] = field(default_factory=Counter)
    _known: dict[Key, int] = field(default_factory=dict)

    def extend(self, count: int) -> Iterator[None]:
        """Sort the rows up to `count` into groups; yields where the caller may paint."""
        columns, known = self.columns, self._known
        for begin in range(len(self.ids), count, FOLD):
            end = min(begin + FOLD, count)
            keys = zip(
                fold(columns.names[begin:end]),
                columns.dtype_ids[begin:end],
                columns.shape_ids[begin:end],
                columns.sizes[begin:end],
                strict=True,
            )
            added = array("I")
            for row, key in enumerate(keys, begin):
                group = known.get(key)
                if group is None:
                    group = known[key] = len(self.patterns)
                    self.patterns.append(key[0])
                    self.firsts.append(row)
                added.append(group)
            self.ids.extend(added)
            self.totals.update(added)
            yield

    def dtype(self, group: int) -> str:
        """The dtype of every member."""
        return self.columns.dtypes[self.columns.dtype_ids[self.firsts[group]]]

    def shape(self, group: int) -> Shape:
        """The shape of every member."""
        return self.columns.shapes[self.columns.shape_ids[self.firsts[group]]]

    def size(self, group: int) -> int:
        """The bytes of one member."""
        return self.columns.sizes[self.firsts[group]]

    def members(self, group: int, rows: Sequence[int]) -> list[int]:
        """Those of `rows` that belong to the group."""
        of: Sequence[int] = self.ids[: len(rows)] if rows == range(len(rows)) else [self.ids[row] for row in rows]
        return list(compress(rows, map(group.__eq__, of)))
