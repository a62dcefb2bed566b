"""Threads that assemble pieces, hash them and write them in place; whoever asked is told of each that landed."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hfbench.convert.formats.layout import Piece, row_bytes
from hfbench.convert.plan import Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.assemble import Assembly, Sources
from hfbench.convert.stream.checksum import crc32
from hfbench.convert.stream.outputs import BLOCK_BYTES, Outputs

PATIENCE = 0.1
"""Seconds without news after which the caller gets its turn."""


@dataclass(frozen=True, slots=True)
class Work:
    """One piece to write: the target it is part of, and its file by its path in the output folder."""

    number: int
    target: Target
    piece: Piece
    path: str

    @property
    def bytes(self) -> int:
        """Bytes of the piece."""
        return (self.piece.row_end - self.piece.row) * row_bytes(self.target.spec)


@dataclass(frozen=True, slots=True)
class Landed:
    """A piece that was written."""

    number: int
    sha256: str
    crc32: int


class Writers:
    """Writes pieces with several threads. Left early, they stop after the blocks at hand; all are joined."""

    def __init__(self, work: Sequence[Work], sources: TensorSet, folder: Path, threads: int) -> None:
        self.sources, self.folder = sources, folder
        self.assemblies: dict[int, Assembly] = {}
        self.assembling = threading.Lock()
        self.work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        for each in work:
            self.work.put(each)
        self.left = len(work)
        self.moved = [0] * threads
        """Bytes written so far by each thread."""
        self.news: queue.SimpleQueue[Landed | BaseException] = queue.SimpleQueue()
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True, name=f"convert-{number}")
            for number in range(threads)
        ]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Have the threads stop after the blocks at hand, and wait for that."""
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def results(self) -> Iterator[Landed | None]:
        """What landed, piece by piece; None when for a moment nothing did. An error of a thread is raised here."""
        while self.left:
            try:
                found = self.news.get(timeout=PATIENCE)
            except queue.Empty:
                yield None
                continue
            if isinstance(found, BaseException):
                raise found
            self.left -= 1
            yield found

    def leftover(self) -> Iterator[Landed]:
        """What landed but was not asked for, after the threads are done."""
        while not self.news.empty():
            found = self.news.get()
            if isinstance(found, Landed):
                yield found

    def _run(self, thread: int) -> None:
        try:
            with Sources(self.sources) as sources, Outputs(self.folder) as outputs:
                while not self.stop.is_set():
                    landed = self._write(self.work.get_nowait(), sources, outputs, thread)
                    if landed:
                        self.news.put(landed)
        except queue.Empty:
            return
        except BaseException as error:
            self.news.put(error)

    def _assembly(self, target: Target) -> Assembly:
        """How a target is put together, worked out once for all its pieces."""
        with self.assembling:
            found = self.assemblies.get(id(target))
            if found is None:
                found = self.assemblies[id(target)] = Assembly(target, self.sources.tensors)
            return found

    def _write(self, work: Work, sources: Sources, outputs: Outputs, thread: int) -> Landed | None:
        piece, assembly = work.piece, self._assembly(work.target)
        size = assembly.row_bytes
        step = max(1, BLOCK_BYTES // size) if size else max(1, piece.row_end - piece.row)
        stretch = outputs.stretch(work.path, piece.begin, step * size, cached=work.bytes < BLOCK_BYTES)
        digest, check = hashlib.sha256(), 0
        for row in range(piece.row, piece.row_end, step):
            end = min(row + step, piece.row_end)
            room = stretch.room((end - row) * size)
            assembly.fill(room, row, end, sources)
            digest.update(room)
            if piece.crc32_at:
                check = crc32(room, check)
            stretch.put(len(room))
            self.moved[thread] += len(room)
            if self.stop.is_set():
                return None
        stretch.flush()
        for place in piece.crc32_at:
            outputs.output(work.path).write(memoryview(check.to_bytes(4, "little")), place)
        return Landed(work.number, digest.hexdigest(), check)
