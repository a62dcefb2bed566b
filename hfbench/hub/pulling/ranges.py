"""Which bytes of a file are there: disjoint stretches, in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Ranges:
    """Half-open stretches `[start, end)`; adding joins what touches. Not safe for threads by itself."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._starts, self._ends, strict=True))

    @property
    def total(self) -> int:
        """Bytes in all stretches."""
        return sum(self._ends) - sum(self._starts)

    @property
    def prefix(self) -> int:
        """Bytes from the beginning of the file without a gap."""
        return self._ends[0] if self._starts and self._starts[0] == 0 else 0

    def add(self, start: int, end: int) -> None:
        """Note that these bytes are there."""
        if start >= end:
            return
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]

    def gaps(self, size: int, longest: int) -> Iterator[tuple[int, int]]:
        """What is missing of a file of `size` bytes, in pieces of at most `longest`."""
        at = 0
        for start, end in [*self, (size, size)]:
            while at < start:
                yield at, min(start, at + longest)
                at = min(start, at + longest)
            at = max(at, end)
