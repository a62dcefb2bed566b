"""Threads that read pieces of tensors and count what is in them; numpy lets go of Python's lock while it counts."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.problem import ModelError
from hfbench.models.values.codes import Code
from hfbench.models.values.reading import Weights
from hfbench.models.values.tally import Measure, Tally

BLOCK = 2**19
"""Bytes counted at a time: with the codes made of them they stay in the second-level cache of a core."""

MOST_THREADS = 8
"""More would only wait for each other: for Python's lock, and for memory."""

PATIENCE = 0.1
"""Seconds without news after which the caller gets its turn."""

GRACE = 2.0
"""Seconds that all threads are given to stop. One that waits for a dead disk is left behind."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one tensor, counted from the start of its shard's data."""

    row: int
    shard: str
    code: Code
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Counted:
    """What became of a piece; `trouble` says why it could not be read to its end."""

    piece: Piece
    tally: Tally
    trouble: str = ""


class Crew:
    """Works through lists of pieces, each list in one thread. Left early, it stops after the blocks at hand."""

    def __init__(self, checkpoint: Checkpoint, work: Iterator[Sequence[Piece]], threads: int) -> None:
        self._checkpoint, self._work = checkpoint, work
        self._taking = threading.Lock()
        self._stop = threading.Event()
        self._news: queue.SimpleQueue[list[Counted] | BaseException | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def results(self) -> Iterator[list[Counted]]:
        """What was counted, as it comes; an empty list now and then while nothing does."""
        working = len(self._threads)
        while working:
            try:
                news = self._news.get(timeout=PATIENCE)
            except queue.Empty:
                yield []
                continue
            if isinstance(news, BaseException):
                raise news
            if news is None:
                working -= 1
            else:
                yield news

    def _run(self) -> None:
        try:
            measure = Measure(BLOCK)
            with Weights(self._checkpoint) as weights:
                while not self._stop.is_set() and (pieces := self._take()):
                    self._news.put([self._count(piece, weights, measure) for piece in pieces])
        except BaseException as error:  # the calling thread raises it again
            self._news.put(error)
        self._news.put(None)

    def _take(self) -> Sequence[Piece]:
        with self._taking:
            return next(self._work, ())

    def _count(self, piece: Piece, weights: Weights, measure: Measure) -> Counted:
        tally, room = Tally(), memoryview(measure.raw)
        for begin in range(piece.begin, piece.end, BLOCK):
            if self._stop.is_set():
                break
            size = min(BLOCK, piece.end - begin)
            try:
                weights.fill(room[:size], piece.shard, begin)
            except ModelError as error:
                return Counted(piece, tally, error.found)
            tally.add(measure.tally(size, piece.code))
        return Counted(piece, tally)


def threads_here() -> int:
    """As many as this process may use processors, within reason."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))
