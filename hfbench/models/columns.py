"""All tensors of a checkpoint as columns: a million rows in a few arrays and interned tables."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import prod
from typing import TypeVar

V = TypeVar("V")

Shape = tuple[int, ...]
Row = tuple[str, str, Shape, int, int]
"""name, dtype, shape, begin and end: bytes counted from the start of the shard's data section."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of one shard. `begin` and `end` count bytes from the start of the shard's data section."""

    name: str
    dtype: str
    shape: Shape
    begin: int
    end: int
    shard: str

    @property
    def bytes(self) -> int:
        """Bytes the tensor takes in its shard."""
        return self.end - self.begin

    @property
    def elements(self) -> int:
        """Stored elements: packed formats hold more values than this."""
        return prod(self.shape)


class TensorColumns:
    """Names, dtypes, shapes, extents and shards of tensors, by row number; rows are only ever added.

    `dtype_ids`, `shape_ids` and `shard_ids` are indices into `dtypes`, `shapes` and `shards`.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.dtypes: list[str] = []
        self.shapes: list[Shape] = []
        self.shards: list[str] = []
        self.dtype_ids = array("B")
        self.shape_ids = array("L")
        self.shard_ids = array("L")
        self.begins = array("Q")
        self.sizes = array("Q")
        self.alike: dict[tuple[int, int, int], int] = {}
        """How many rows have this dtype id, shape id and bytes."""
        self._dtype_of: dict[str, int] = {}
        self._shape_of: dict[Shape, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add_shard(self, shard: str, rows: Iterable[Row]) -> None:
        """Append the tensors of one shard, in the order given."""
        kind_of: dict[tuple[str, Shape, int], int] = {}
        names, kind_ids, begins = [], [], []
        for name, dtype, shape, begin, end in rows:
            names.append(name)
            kind_ids.append(kind_of.setdefault((dtype, shape, end - begin), len(kind_of)))
            begins.append(begin)
        self.add_rows(shard, names, list(kind_of), kind_ids, begins)

    def add_rows(
        self,
        shard: str,
        names: Sequence[str],
        kinds: Sequence[tuple[str, Shape, int]],
        kind_ids: Sequence[int],
        begins: Sequence[int],
    ) -> None:
        """Append rows whose (dtype, shape, bytes) stand in `kinds`; a shard may come in several parts in a row."""
        if not self.shards or self.shards[-1] != shard:
            self.shards.append(shard)
        dtypes = [_intern(dtype, self._dtype_of, self.dtypes) for dtype, _, _ in kinds]
        shapes = [_intern(shape, self._shape_of, self.shapes) for _, shape, _ in kinds]
        sizes = [size for _, _, size in kinds]
        self.names += names
        self.dtype_ids.fromlist([dtypes[kind] for kind in kind_ids])
        self.shape_ids.fromlist([shapes[kind] for kind in kind_ids])
        self.sizes.fromlist([sizes[kind] for kind in kind_ids])
        self.begins.extend(begins)
        for kind, count in Counter(kind_ids).items():
            key = (dtypes[kind], shapes[kind], sizes[kind])
            self.alike[key] = self.alike.get(key, 0) + count
        self.shard_ids.extend(repeat(len(self.shards) - 1, len(names)))

    def __getitem__(self, row: int) -> TensorInfo:
        begin = self.begins[row]
        return TensorInfo(
            self.names[row],
            self.dtypes[self.dtype_ids[row]],
            self.shapes[self.shape_ids[row]],
            begin,
            begin + self.sizes[row],
            self.shards[self.shard_ids[row]],
        )

    def __iter__(self) -> Iterator[TensorInfo]:
        return (self[row] for row in range(len(self)))


def _intern(value: V, known: dict[V, int], table: list[V]) -> int:
    found = known.get(value)
    if found is None:
        found = known[value] = len(table)
        table.append(value)
    return found
