"""A tensor that lies in parts: its chunks in a torch_dist folder, a transposed or a cut view of another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from hfbench.convert.boxes import Box, Copy, Shape, TensorSpec, uncovered
from hfbench.convert.stored import Stored


class RowIndex:
    """Copies by the rows of their target, for finding those of a block without looking at all."""

    def __init__(self, copies: Sequence[Copy]) -> None:
        self.order = sorted(range(len(copies)), key=lambda number: copies[number].target_box.row)
        self.copies = [copies[number] for number in self.order]
        self.rows = [copy.target_box.row for copy in self.copies]
        self.tallest = max((copy.target_box.height for copy in self.copies), default=0)

    def touching(self, row: int, row_end: int) -> range:
        """Places in `copies` of those that may have rows in common with `row` to `row_end`."""
        return range(bisect_left(self.rows, row - self.tallest + 1), bisect_left(self.rows, row_end))


@dataclass(frozen=True)
class Joined:
    """A tensor made of boxes of others, which lie in files; the copies' target is this tensor."""

    spec: TensorSpec
    copies: tuple[Copy, ...]
    parts: Mapping[str, Stored]

    @cached_property
    def index(self) -> RowIndex:
        """The copies by row, sorted once however many targets ask."""
        return RowIndex(self.copies)

    def read(self, box: Box) -> bytearray:
        """The elements of a box, row after row without holes."""
        from hfbench.convert.stream.assemble import read_box

        return read_box(self, box)


def joined(spec: TensorSpec, chunks: Sequence[tuple[Shape, Stored]]) -> Joined:
    """A tensor of chunks, each with its offsets. ValueError when they do not cover it, or two hold the same."""
    copies: list[Copy] = []
    parts: dict[str, Stored] = {}
    for number, (offsets, stored) in enumerate(chunks):
        name = f"{number}"
        parts[name] = stored
        copies += (
            Copy(name, source, spec.name, target)
            for source, target in boxes_of_chunk(spec.shape, offsets, stored.spec.shape)
        )
    if missing := uncovered(spec, copies):
        raise ValueError(f"{missing:,} of its elements are in no chunk")
    return Joined(spec, tuple(copies), parts)


def boxes_of_chunk(shape: Shape, offsets: Shape, sizes: Shape) -> Iterator[tuple[Box, Box]]:
    """The boxes of a chunk and the boxes of the whole tensor that are the same elements.

    Of [4, 6] the chunk of [4, 3] at (0, 3) is one pair: its rows 0-4, columns 0-3, and rows 0-4, columns 3-6 of the
    whole. Of [2, 4, 6] the chunk of [2, 2, 6] at (0, 2, 0) is two pairs, one for each index of the first dimension.
    """
    if len(offsets) != len(shape) or len(sizes) != len(shape):
        raise ValueError(f"a chunk of {list(sizes)} at {list(offsets)} is no part of {list(shape)}")
    if any(at + size > whole for at, size, whole in zip(offsets, sizes, shape, strict=True)):
        raise ValueError(f"a chunk of {list(sizes)} at {list(offsets)} reaches out of {list(shape)}")
    if len(shape) < 2:
        begin, height = (offsets[0], sizes[0]) if shape else (0, 1)
        yield Box(0, height, 0, 1), Box(begin, begin + height, 0, 1)
        return
    leading, column, width = len(shape) - 1, offsets[-1], sizes[-1]
    split = leading - 1  # rows of these dimensions follow each other: all of a dimension joins it with the one before
    while split > 0 and sizes[split] == shape[split]:
        split -= 1
    run = prod(sizes[split:leading])
    steps = [prod(shape[place + 1 : leading]) for place in range(leading)]
    for number, index in enumerate(product(*map(range, sizes[:split]))):
        place = [at + step for at, step in zip(offsets, (*index, *(0 for _ in range(split, leading))), strict=False)]
        row = sum(at * step for at, step in zip(place, steps, strict=True))
        yield Box(number * run, (number + 1) * run, 0, width), Box(row, row + run, column, column + width)
