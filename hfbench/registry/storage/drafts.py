"""Files that appear whole or not at all: written as a draft, synced, renamed, and their folder synced."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from hfbench.registry.fault_points import passed
from hfbench.registry.storage.cache import make_room
from hfbench.registry.storage.layout import Layout
from hfbench.units import MIB

GATHERED = 4 * MIB
"""Bytes that a thread writes at a time."""
FULL = (errno.ENOSPC, errno.EDQUOT)
AT_LEAST = 16 * MIB
"""Bytes that give way at a time on a full disk, beyond those that are wanted."""
P = ParamSpec("P")
T = TypeVar("T")
READ_ONLY = 0o444
"""Others may hold hard links to what is kept: nobody writes through one."""


async def gathered(body: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The pieces of a body, several at a time and not copied: as many as a thread is worth waking for."""
    pieces: list[bytes] = []
    size = 0
    async for piece in body:
        pieces.append(piece)
        size += len(piece)
        if size >= GATHERED:
            yield pieces
            pieces, size = [], 0
    if pieces:
        yield pieces


class Draft:
    """A file being written in the drafts folder; it vanishes at the end of the `with` unless it was kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.path = layout.drafts / secrets.token_hex(16)
        self.file = self.path.open("x+b", buffering=0)
        self.size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append; on a full disk files of the cache give way."""
        view = memoryview(data)
        while view:
            done = with_room(self._layout, len(view), self.file.write, view)
            view = view[done:]
        self.size += len(data)

    def write_all(self, pieces: Sequence[bytes]) -> None:
        """Append each."""
        for piece in pieces:
            self.write(piece)

    def keep(self, path: Path, *, durable: bool = True) -> None:
        """Give it its final name, in the place of what is there: these bytes were verified, those may be damaged.

        Durable is to outlive a power cut; what can be made again need not.
        """
        os.fchmod(self.file.fileno(), READ_ONLY)
        if durable:
            with_room(self._layout, self.size, os.fsync, self.file.fileno())
        self.file.close()
        passed("rename")
        os.rename(self.path, path)
        passed("renamed")
        if durable:
            sync_folder(path.parent)
            passed("synced")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.file.closed:
            self.file.close()
        self.path.unlink(missing_ok=True)


def with_room(layout: Layout, wanted: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns; where the disk is full it is tried once more, after files of the cache gave way."""
    try:
        return work(*args, **kwargs)
    except OSError as error:
        if error.errno not in FULL or not make_room(layout, wanted + AT_LEAST):
            raise
    return work(*args, **kwargs)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
