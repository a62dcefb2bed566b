"""Groups tensor names that differ only in their numbers: `model.layers.*.mlp.down_proj.weight`."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass

from hfbench.models.columns import Shape, TensorColumns

MIXED = "mixed"

_NUMBER = re.compile(r"\.[0-9]+(?=\.|\Z)").sub
_FIRST = re.compile(r"[0-9]+(?=\.|\Z)").sub


@dataclass(frozen=True, slots=True)
class Group:
    """Tensors of one pattern. `dtype` is "mixed" and `shape` None when they are not all alike; `bytes` is their sum."""

    pattern: str
    rows: array[int]
    bytes: int
    dtype: str
    shape: Shape | None

    @property
    def count(self) -> int:
        """How many tensors."""
        return len(self.rows)


def fold(name: str) -> str:
    """The name with every part that is a number replaced by `*`: `layers.3.w1` -> `layers.*.w1`."""
    folded = _NUMBER(".*", name)
    return _FIRST("*", folded, 1) if "0" <= name[:1] <= "9" and re.match(r"[0-9]+(?:\.|\Z)", name) else folded


class Patterns:
    """Groups rows of columns as they arrive; rows taken in once are never looked at again."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._taken = 0

    def take(self, columns: TensorColumns) -> None:
        """Take in the rows added since the last call."""
        rows = self._rows
        for row, name in enumerate(columns.names[self._taken :], self._taken):
            pattern = _NUMBER(".*", name) if name[:1] > "9" else fold(name)  # few names begin with a number
            group = rows.get(pattern)
            if group is None:
                group = rows[pattern] = array("L")
            group.append(row)
        self._taken = len(columns)

    def groups(self, columns: TensorColumns) -> list[Group]:
        """The groups so far, in the order in which their first tensors came."""
        return [_group(pattern, rows, columns) for pattern, rows in self._rows.items()]


def group_by_pattern(columns: TensorColumns) -> list[Group]:
    """All rows in groups, in the order in which the first of each comes."""
    patterns = Patterns()
    patterns.take(columns)
    return patterns.groups(columns)


def _group(pattern: str, rows: array[int], columns: TensorColumns) -> Group:
    dtypes = set(map(columns.dtype_ids.__getitem__, rows))
    shapes = set(map(columns.shape_ids.__getitem__, rows))
    return Group(
        pattern,
        rows,
        sum(map(columns.sizes.__getitem__, rows)),
        columns.dtypes[dtypes.pop()] if len(dtypes) == 1 else MIXED,
        columns.shapes[shapes.pop()] if len(shapes) == 1 else None,
    )
