"""Finds tensors that stand under other names on the two sides by what they hold: dtype, shape and every byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from hashlib import blake2b

from hfbench.models.columns import Shape, TensorColumns, TensorInfo
from hfbench.models.diff.facts import Clash, Rename
from hfbench.models.dtypes import BITS
from hfbench.models.values.reading import Weights

STRETCH = 2**20
HEAD = 2**16
"""Bytes at the beginning by which most tensors are told apart, so that few are read to their end."""

Rows = dict[bytes, list[int]]
Done = Callable[[int], None]


def find_moved(
    columns: tuple[TensorColumns, TensorColumns],
    weights: tuple[Weights, Weights],
    removed: Iterable[int],
    added: Iterable[int],
    done: Done = lambda _: None,
) -> tuple[list[tuple[int, int]], list[Rename], list[Clash]]:
    """Pairs of a row of A and one of B with the same content, their names, and contents that several rows share.

    Empty tensors and those of one value, such as a fresh bias, say nothing about who they are and are left out.
    ModelError when a file gives out.
    """
    pairs, renames, clashes = list[tuple[int, int]](), list[Rename](), list[Clash]()
    for rows in _alike(columns, removed, added):
        for first in _shared(columns, weights, rows, HEAD, done):
            for a, b in _shared(columns, weights, first, None, done):
                names = [[side.names[row] for row in each] for side, each in zip(columns, (a, b), strict=True)]
                if len(a) == len(b) == 1:
                    pairs.append((a[0], b[0]))
                    renames.append(Rename(a=names[0][0], b=names[1][0], rule="", by="bytes"))
                else:
                    clashes.append(Clash(name="the same bytes", rule="", a=tuple(names[0]), b=tuple(names[1])))
    return pairs, renames, clashes


Sides = tuple[list[int], list[int]]


def _alike(
    columns: tuple[TensorColumns, TensorColumns], removed: Iterable[int], added: Iterable[int]
) -> Iterable[Sides]:
    """Rows of both sides that share dtype and shape."""
    kinds: defaultdict[tuple[str, Shape], Sides] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((removed, added)):
        table = columns[side]
        for row in rows:
            if table.sizes[row]:
                kinds[table.dtypes[table.dtype_ids[row]], table.shapes[table.shape_ids[row]]][side].append(row)
    return [rows for rows in kinds.values() if all(rows)]


def _shared(
    columns: tuple[TensorColumns, TensorColumns],
    weights: tuple[Weights, Weights],
    rows: Sides,
    most: int | None,
    done: Done,
) -> Iterable[Sides]:
    """The rows by their content, or by its first `most` bytes, where both sides have some."""
    found: defaultdict[bytes, Sides] = defaultdict(lambda: ([], []))
    for side in (0, 1):
        for row in rows[side]:
            digest = _digest(weights[side], columns[side][row], most, done)
            if digest:
                found[digest][side].append(row)
    return [each for each in found.values() if all(each)]


def _digest(weights: Weights, tensor: TensorInfo, most: int | None, done: Done) -> bytes:
    """Of the first `most` bytes, or of all; of a whole tensor of one value it is empty."""
    end = tensor.bytes if most is None else min(most, tensor.bytes)
    made, one_value, value = blake2b(digest_size=16), True, b""
    for begin in range(0, end, STRETCH):
        part = weights.read(tensor, begin, min(begin + STRETCH, end))
        made.update(part)
        value = value or bytes(part[: max(1, BITS[tensor.dtype] // 8)])
        one_value = one_value and part == value * (len(part) // len(value))
        if most is None:
            done(len(part))
    return b"" if one_value and most is None else made.digest()
