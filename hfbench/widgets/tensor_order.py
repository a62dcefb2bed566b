"""Orders of tensor rows, worked out a slice at a time."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Generator, Sequence
from enum import Enum
from heapq import merge
from itertools import repeat

from hfbench.models.columns import TensorColumns

RUN = 5_000
"""Rows sorted between two chances to paint: 10 to 20 ms."""

_DIGITS = re.compile(r"(\d+)")


class Sort(Enum):
    """What the rows are ordered by."""

    FILE = "file"
    NAME = "name"
    SIZE = "size"


def natural(name: str) -> str:
    """A key by which `layers.2` comes before `layers.10`."""
    return _padded(name)


def natural_keys(names: Sequence[str]) -> list[str]:
    """The natural key of each name; all at once costs a third of one by one."""
    keys = _padded("\n".join(names)).split("\n")
    return keys if len(keys) == len(names) else [_padded(name) for name in names]


def order_rows(
    columns: TensorColumns, count: int, sort: Sort, descending: bool
) -> Generator[None, None, Sequence[int]]:
    """The first `count` rows in order; yields where the caller may paint, and returns the order."""
    rows: Sequence[int]
    if sort is Sort.NAME:
        rows = yield from _by_name(columns, count)
    elif sort is Sort.SIZE:
        return (yield from _by_size(columns, count, descending))
    else:
        rows = range(count)
    return rows[::-1] if descending else rows


def _by_name(columns: TensorColumns, count: int) -> Generator[None, None, Sequence[int]]:
    """Sorted runs, merged row by row: no single sort of everything, which nothing could interrupt."""
    runs: list[tuple[list[str], array[int]]] = []
    for begin in range(0, count, RUN):
        keys = natural_keys(columns.names[begin : min(begin + RUN, count)])
        order = sorted(range(len(keys)), key=keys.__getitem__)
        runs.append(([keys[at] for at in order], array("I", (begin + at for at in order))))
        yield
    rows = array("I")
    for done, (_, row) in enumerate(merge(*(zip(*run, strict=True) for run in runs))):
        rows.append(row)
        if done % (RUN // 2) == 0:
            yield
    return rows


def _by_size(columns: TensorColumns, count: int, descending: bool) -> Generator[None, None, Sequence[int]]:
    """Tensors of a model come in few sizes: gather the rows of each, then sort the sizes. Ties keep file order."""
    rows_of: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    for begin in range(0, count, 8 * RUN):
        for row, size in enumerate(columns.sizes[begin : min(begin + 8 * RUN, count)], begin):
            rows_of[size].append(row)
        yield
    rows = array("I")
    for size in sorted(rows_of, reverse=descending):
        rows.extend(rows_of[size])
    return rows


def _padded(text: str) -> str:
    parts = _DIGITS.split(text)
    parts[1::2] = map(str.zfill, parts[1::2], repeat(8))
    return "".join(parts)
