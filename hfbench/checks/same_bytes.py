"""Tells whether two tensors are equal by their bytes, all of them when they are small, samples when they are not."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.glance import data_starts
from hfbench.checks.subject import Subject
from hfbench.models.columns import TensorInfo
from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError

BLOCK = 2**16
MOST_BLOCKS = 64
"""4 MiB of each tensor at most, evenly spread: two different heads differ nearly everywhere."""


def compare(subject: Subject, first: TensorInfo, second: TensorInfo) -> tuple[int, bool]:
    """Bytes compared, and whether they are equal; tensors of another shape or dtype differ without a look."""
    if (first.shape, first.dtype, first.bytes) != (second.shape, second.dtype, second.bytes):
        return 0, False
    if subject.headers_only:
        return 0, True  # nothing can be said against it
    starts = data_starts(subject)
    compared = 0
    try:
        with (
            open_regular(subject.folder / first.shard, subject.folder) as one,
            open_regular(subject.folder / second.shard, subject.folder) as other,
        ):
            for place, length in _blocks(first.bytes):
                one.seek(starts[first.shard] + first.begin + place)
                other.seek(starts[second.shard] + second.begin + place)
                compared += length
                if one.read(length) != other.read(length):
                    return compared, False
    except (ModelError, OSError):
        return 0, True  # gone since the headers were read: nothing can be said against it
    return compared, True


def _blocks(size: int) -> Iterator[tuple[int, int]]:
    count = -(-size // BLOCK)
    step = max(1, count // MOST_BLOCKS)
    for block in range(0, count, step):
        yield block * BLOCK, min(BLOCK, size - block * BLOCK)
