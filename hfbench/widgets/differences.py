"""The differences of two checkpoints as rows: status, name, both sides and metrics, in columns a table can show."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hfbench.models.columns import Shape, TensorColumns
from hfbench.models.diff.facts import ModelDiff, Tensor, ValueDiff, farthest_first
from hfbench.models.dtypes import BITS
from hfbench.text import printable
from hfbench.widgets.cells import width_of
from hfbench.widgets.tensor_widths import shape_text

WORDS = ("removed", "added", "unread", "shape", "dtype", "differ", "unknown", "close", "renamed", "equal")
"""What a row can be, the weightiest first: rows stand in this order."""

METRICS = ("max_abs", "mean_abs", "relative_l2", "cosine")

SAME_BYTES = "the same bytes"
"""In place of the rule of a tensor that was found by what it holds."""

Sides = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Differences:
    """Rows of differences. In `columns`, a dtype is a status and a shape holds the number of a pair in `sides`.

    Rows of one status stand together, in the order of WORDS; those with values begin with the farthest apart.
    """

    columns: TensorColumns
    sides: tuple[Sides, ...]
    """What stands at A's and at B's side, such as `BF16 10x20`."""
    spans: Mapping[str, range]
    """The rows of each status."""
    metrics: Mapping[str, array[float]]
    """By row, NaN where there is none; empty when no values were compared."""
    nonfinite: Mapping[int, int]
    notes: Mapping[int, str]
    renames: Mapping[int, tuple[str, int]]
    """B's name of a row that was renamed, and the number of the rule."""
    rules: tuple[str, ...]

    def metric(self, name: str, row: int) -> float | None:
        """One metric of one row; None where no number tells it."""
        value = self.metrics[name][row] if self.metrics else math.nan
        return None if math.isnan(value) else value

    def part(self, status: str) -> tuple[TensorColumns, int]:
        """The rows of one status, or all rows for an empty one, and the number of the first."""
        every = self.columns
        if not status:
            return every, 0
        rows, part = self.spans[status], TensorColumns()
        cut = slice(rows.start, rows.stop)
        part.dtypes, part.shapes, part.shards = every.dtypes, every.shapes, every.shards
        part.names, part.begins, part.sizes = every.names[cut], every.begins[cut], every.sizes[cut]
        part.dtype_ids, part.shape_ids, part.shard_ids = (
            each[cut] for each in (every.dtype_ids, every.shape_ids, every.shard_ids)
        )
        return part, rows.start

    def widths(self) -> tuple[int, int]:
        """Cells of the widest text of each side."""
        return (
            max((width_of(side[0]) for side in self.sides), default=0),
            max((width_of(side[1]) for side in self.sides), default=0),
        )

    def packed(self) -> tuple[Any, ...]:
        """All of it in types that `marshal` writes."""
        columns = self.columns
        return (
            columns.names,
            columns.dtypes,
            columns.shapes,
            *(each.tobytes() for each in (columns.dtype_ids, columns.shape_ids, columns.sizes)),
            self.sides,
            {status: (rows.start, rows.stop) for status, rows in self.spans.items()},
            {name: values.tobytes() for name, values in self.metrics.items()},
            dict(self.nonfinite),
            dict(self.notes),
            dict(self.renames),
            self.rules,
        )


def unpacked(packed: tuple[Any, ...]) -> Differences:
    """What `packed` was made of; its parts are of the same interpreter on the same machine."""
    names, statuses, shapes, dtype_ids, shape_ids, sizes, sides, spans, metrics, nonfinite, notes, renames, rules = (
        packed
    )
    columns = TensorColumns()
    columns.names, columns.dtypes, columns.shapes, columns.shards = names, statuses, shapes, [""]
    columns.dtype_ids, columns.shape_ids, columns.sizes = (
        array("B", dtype_ids),
        array("L", shape_ids),
        array("Q", sizes),
    )
    columns.begins, columns.shard_ids = array("Q", bytes(8 * len(names))), array("L", bytes(8 * len(names)))
    return Differences(
        columns=columns,
        sides=sides,
        spans={status: range(*rows) for status, rows in spans.items()},
        metrics={name: array("d", values) for name, values in metrics.items()},
        nonfinite=nonfinite,
        notes=notes,
        renames=renames,
        rules=rules,
    )


def differences_of(found: ModelDiff) -> Differences:
    """The rows of a comparison."""
    rows = _Rows(found)
    values = {each.name: each for each in found.values or ()}
    shapes = {each.name: each for each in found.shape}
    dtypes = {each.name: each for each in found.dtype}
    for name in dict.fromkeys((*_sorted_names(found.values or ()), *shapes, *dtypes, *rows.renamed)):
        shape, dtype, value = shapes.get(name), dtypes.get(name), values.get(name)
        told = (shape and "shape", dtype and "dtype", value and value.verdict, name in rows.renamed and "renamed")
        words = [word for word in told if word]
        of_a = dtype.a if dtype else value.dtype if value else shape.dtype if shape else ""
        of_b = dtype.b if dtype else of_a
        stored: Shape | None = shape.a if shape else value.shape if value else dtype.shape if dtype else None
        there = shape.b if shape else stored
        if of_a:
            rows.add(name, words, _side(of_a, stored), _side(of_b, there), _bytes(of_b, there), value)
        else:  # nothing but the name differs
            rows.add(name, words, "", printable(rows.renamed[name][1]), 0)
    rows.add_tensors("removed", found.removed)
    rows.add_tensors("added", found.added)
    rows.add_tensors("unread", found.unread)
    return rows.made()


def _sorted_names(values: Iterable[ValueDiff]) -> Iterator[str]:
    """Names, those that differ most first."""
    classes: defaultdict[str, list[ValueDiff]] = defaultdict(list)
    for each in values:
        classes[each.verdict].append(each)
    for verdict, found in classes.items():
        yield from (each.name for each in (found if verdict == "equal" else sorted(found, key=farthest_first)))


Row = tuple[str, int, int, ValueDiff | None]
"""Name, number of the sides, bytes, values."""


class _Rows:
    """Gathers rows by status."""

    def __init__(self, found: ModelDiff) -> None:
        self.renamed = {each.a: (each.b, each.rule or SAME_BYTES) for each in found.renamed}
        self.measured = found.values is not None
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.sides: dict[Sides, int] = {}

    def add(self, name: str, told: Sequence[str], a: str, b: str, size: int, value: ValueDiff | None = None) -> None:
        status = " ".join(word for word in told if word != "equal" or len(told) == 1)
        self.rows[status].append((name, self.sides.setdefault((a, b), len(self.sides)), size, value))

    def add_tensors(self, status: str, tensors: Iterable[Tensor]) -> None:
        for each in tensors:
            side = _side(each.dtype, each.shape)
            a, b = ("", side) if status == "added" else (side, "")
            self.add(each.name, [status], a, b, _bytes(each.dtype, each.shape))

    def made(self) -> Differences:
        columns, spans = TensorColumns(), dict[str, range]()
        metrics = {name: array("d") for name in METRICS} if self.measured else {}
        nonfinite, notes, renames, rules = (
            dict[int, int](),
            dict[int, str](),
            dict[int, tuple[str, int]](),
            dict[str, int](),
        )
        for status in sorted(self.rows, key=_weight):
            rows, begin = self.rows[status], len(columns)
            kinds = [(side, size) for _, side, size, _ in rows]
            known = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
            named = [(status, (side,), size) for side, size in known]
            columns.add_rows("", [row[0] for row in rows], named, [known[kind] for kind in kinds], [0] * len(rows))
            spans[status] = range(begin, len(columns))
            for place, (name, _, _, value) in enumerate(rows, begin):
                for metric, numbers in metrics.items():
                    number = getattr(value, metric, None)
                    numbers.append(math.nan if number is None else number)
                if value and value.nonfinite:
                    nonfinite[place] = value.nonfinite
                if value and value.note:
                    notes[place] = value.note
                if "renamed" in status:
                    into, rule = self.renamed[name]
                    renames[place] = into, rules.setdefault(rule, len(rules))
        return Differences(columns, tuple(self.sides), spans, metrics, nonfinite, notes, renames, tuple(rules))


def _weight(status: str) -> tuple[int, str]:
    return min(WORDS.index(word) for word in status.split()), status


def _side(dtype: str, shape: Shape | None) -> str:
    return printable(f"{dtype} {'' if shape is None else shape_text(shape)}".strip())


def _bytes(dtype: str, shape: Shape | None) -> int:
    """Bytes of the tensor, 0 where they are not known; no more than columns can hold."""
    return min(prod(shape) * BITS.get(dtype, 0) // 8, 2**63) if shape is not None else 0
