"""Compares the values of paired tensors, one tensor and one stretch of it at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, Self

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.columns import TensorInfo
from hfbench.models.diff.decode import DECODED, numbers
from hfbench.models.diff.facts import ValueDiff
from hfbench.models.diff.metrics import Metrics, equal_values
from hfbench.models.dtypes import BITS
from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError

STRETCH = 2**22
"""Bytes compared at a time."""

ELEMENTS = 2**18
"""Elements measured at a time: some ten arrays of float64 stay below 32 MiB."""

MOST_OPEN = 16
"""Files kept open a side."""


class Weights:
    """Reads stretches of a checkpoint's tensors; closes its files when left."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.folder = checkpoint.folder
        self.starts = {shard.name: shard.header_bytes for shard in checkpoint.shards}
        self.files: dict[str, BinaryIO] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            file.close()

    def read(self, tensor: TensorInfo, begin: int, end: int) -> bytes:
        """Bytes of a tensor counted from its first; fewer at its end. ModelError when the file does not give them."""
        end = min(end, tensor.bytes)
        place, parts, wanted = self.starts[tensor.shard] + tensor.begin + begin, list[bytes](), end - begin
        try:
            while wanted > 0:
                part = os.pread(self._file(tensor.shard).fileno(), wanted, place)
                if not part:
                    raise ModelError("st_truncated", "ends before its last tensor", where=tensor.shard)
                parts.append(part)
                place, wanted = place + len(part), wanted - len(part)
        except OSError as error:
            raise ModelError("unreadable", f"cannot be read ({error.strerror})", where=tensor.shard) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _file(self, shard: str) -> BinaryIO:
        if shard not in self.files:
            if len(self.files) == MOST_OPEN:
                self.files.pop(next(iter(self.files))).close()
            self.files[shard] = open_regular(self.folder / shard, self.folder)
        return self.files[shard]


def compare_values(
    a: Checkpoint, b: Checkpoint, pairs: Iterable[tuple[int, int]], done: Callable[[int], None] = lambda _: None
) -> Iterator[ValueDiff]:
    """The pairs of one shape, in order; `done` is told the bytes of A behind each. ModelError when a file gives out.

    MissingError when bytes differ and numpy is not there to say by how much.
    """
    with Weights(a) as weights_a, Weights(b) as weights_b:
        for row_a, row_b in pairs:
            one, other = a.columns[row_a], b.columns[row_b]
            if one.shape == other.shape:
                yield _compare(weights_a, one, weights_b, other)
            done(one.bytes)


def _compare(a: Weights, one: TensorInfo, b: Weights, other: TensorInfo) -> ValueDiff:
    same_dtype = one.dtype == other.dtype
    if same_dtype and _same_bytes(a, one, b, other):
        return equal_values(one.name)
    packed = {one.dtype, other.dtype} - DECODED
    if packed or (one.dtype == "C64") != (other.dtype == "C64"):
        note = f"{' and '.join(sorted(packed or {one.dtype, other.dtype}))} values are not measured"
        return ValueDiff(name=one.name, verdict="differ" if same_dtype else "unknown", note=note)
    metrics = Metrics(one.dtype, other.dtype)
    for begin in range(0, one.elements, ELEMENTS):
        parts = [
            numbers(side.read(tensor, begin * size, (begin + ELEMENTS) * size), tensor.dtype)
            for side, tensor in ((a, one), (b, other))
            for size in (BITS[tensor.dtype] // 8,)
        ]
        metrics.add(*parts)
    return metrics.told(one.name)


def _same_bytes(a: Weights, one: TensorInfo, b: Weights, other: TensorInfo) -> bool:
    return all(
        a.read(one, begin, begin + STRETCH) == b.read(other, begin, begin + STRETCH)
        for begin in range(0, one.bytes, STRETCH)
    )
