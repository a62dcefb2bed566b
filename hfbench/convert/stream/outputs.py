"""Files written in place: long stretches past the page cache where the disk allows it, the rest through it."""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PAGE = 4096
"""Bytes of which disks take whole ones, from addresses and to places that are multiples of it."""

BLOCK_BYTES = 1 << 20
"""Put together, hashed and written at a time: it stays in the cache of a core."""

MOST_OPEN = 16
"""Files kept open a thread."""


class Output:
    """A file of a known size, open for writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cached = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self.direct = -1
        with suppress(OSError):  # memory's own and some network file systems have no such thing
            self.direct = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECT)

    def write(self, data: memoryview, at: int) -> None:
        """Write through the page cache. OSError names the file."""
        write_all(self.cached, data, at, self.path)

    def write_pages(self, pages: memoryview, at: int) -> None:
        """Write whole pages from a page's begin in memory to one in the file, past the page cache where that works."""
        if self.direct >= 0:
            try:
                write_all(self.direct, pages, at, self.path)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                os.close(self.direct)  # the disk wants larger pages
                self.direct = -1
            else:
                return
        self.write(pages, at)

    def close(self) -> None:
        """Close it."""
        os.close(self.cached)
        if self.direct >= 0:
            os.close(self.direct)


class Outputs:
    """The files of a folder, some of them open at a time, and a buffer. One thread may use it, until it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: dict[str, Output] = {}
        self.buffer = mmap.mmap(-1, BLOCK_BYTES + PAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for output in self.open.values():
            output.close()

    def output(self, path: str) -> Output:
        """A file by its path in the folder."""
        if path not in self.open:
            if len(self.open) == MOST_OPEN:
                self.open.pop(next(iter(self.open))).close()
            self.open[path] = Output(self.folder / path)
        return self.open[path]

    def stretch(self, path: str, at: int, most: int, *, cached: bool) -> Stretch:
        """A stretch of a file to be written in parts of at most `most` bytes; it uses the one buffer there is."""
        if most + PAGE > len(self.buffer):
            self.buffer = mmap.mmap(-1, most + PAGE)
        return Stretch(self.output(path), at, memoryview(self.buffer), cached=cached)


class Stretch:
    """Bytes of a file that follow each other, written from `at` on as they are put into rooms of a buffer.

    A byte stands as far into its page in memory as in the file, so that whole pages can be written as they lie. What
    is left of a page waits for what follows.
    """

    def __init__(self, output: Output, at: int, buffer: memoryview, *, cached: bool) -> None:
        self.output, self.buffer, self.cached = output, buffer, cached
        self.page = at - at % PAGE
        """Where in the file the buffer's first byte goes."""
        self.begin = self.end = at % PAGE
        """The bytes of the buffer that are not written yet."""

    def room(self, size: int) -> memoryview:
        """Where the next bytes are put; `put` says that they are there."""
        return self.buffer[self.end : self.end + size]

    def put(self, size: int) -> None:
        """That many bytes are in their room: write the pages they complete."""
        self.end += size
        whole = self.end - self.end % PAGE
        if self.cached:
            self.flush()
            return
        if not whole:
            return
        if self.begin:
            self.output.write(self.buffer[self.begin : PAGE], self.page + self.begin)
        first = PAGE if self.begin else 0
        self.output.write_pages(self.buffer[first:whole], self.page + first)
        self.buffer[: self.end - whole] = self.buffer[whole : self.end]
        self.page, self.begin, self.end = self.page + whole, 0, self.end - whole

    def flush(self) -> None:
        """Write what is left, through the page cache."""
        self.output.write(self.buffer[self.begin : self.end], self.page + self.begin)
        at = self.page + self.end
        self.page, self.begin = at - at % PAGE, at % PAGE
        self.end = self.begin


def write_all(descriptor: int, data: memoryview, at: int, file: Path) -> None:
    """Write all of it at a place; an OSError names the file."""
    try:
        while data:
            done = os.pwrite(descriptor, data, at)
            data, at = data[done:], at + done
    except OSError as error:
        error.filename = os.fspath(file)
        raise
