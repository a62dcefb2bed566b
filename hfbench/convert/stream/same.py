"""Whether two tensors of a set are the same bits."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.convert.boxes import Box, TensorSpec
from hfbench.convert.formats.layout import row_bytes
from hfbench.convert.stored import Stored, TensorSet
from hfbench.convert.stream.assemble import Source, Sources
from hfbench.jobs.run import Run

STRETCH = 1 << 22
"""Bytes of each that are read at a time."""


def same_place(sources: TensorSet, one: str, other: str) -> bool:
    """Whether they are the same bytes of one file."""
    a, b = sources.tensors[one], sources.tensors[other]
    if not isinstance(a, Stored) or not isinstance(b, Stored):
        return False
    return (a.file, a.begin, a.spec.dtype, a.spec.shape) == (b.file, b.begin, b.spec.dtype, b.spec.shape)


def same_bits(sources: TensorSet, one: str, other: str, run: Run) -> bool:
    """Whether dtype, shape and all bits are equal; read in stretches, told as the phase `compare`."""
    a, b = sources.tensors[one], sources.tensors[other]
    if same_place(sources, one, other):
        return True
    with Sources(sources) as reading:
        for row_end, equal in compared(a, b, reading):
            if not equal:
                return False
            run.progress("compare", row_end, a.spec.rows, "rows")
    return True


def compared(one: Source, other: Source, reading: Sources) -> Iterator[tuple[int, bool]]:
    """Stretch by stretch the row where it ends and whether it is equal in both; where dtype or shape differ, no row."""
    if (one.spec.dtype, one.spec.shape) != (other.spec.dtype, other.spec.shape):
        yield 0, False
        return
    for box in _stretches(one.spec):
        yield box.row_end, reading.read(one, box) == reading.read(other, box)


def _stretches(spec: TensorSpec) -> Iterator[Box]:
    step = max(1, STRETCH // max(1, row_bytes(spec)))
    for row in range(0, spec.rows, step):
        yield Box(row, min(row + step, spec.rows), 0, spec.columns)
