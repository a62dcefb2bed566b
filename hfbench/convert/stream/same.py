"""Whether two tensors of a set are the same bits."""

from __future__ import annotations

from hfbench.convert.boxes import Box
from hfbench.convert.formats.layout import row_bytes
from hfbench.convert.stored import Stored, TensorSet
from hfbench.convert.stream.assemble import Sources
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
    if (a.spec.dtype, a.spec.shape) != (b.spec.dtype, b.spec.shape):
        return False
    if same_place(sources, one, other):
        return True
    rows, step = a.spec.rows, max(1, STRETCH // max(1, row_bytes(a.spec)))
    with Sources(sources) as reading:
        for row in range(0, rows, step):
            box = Box(row, min(row + step, rows), 0, a.spec.columns)
            if reading.read(a, box) != reading.read(b, box):
                return False
            run.progress("compare", box.row_end, rows, "rows")
    return True
