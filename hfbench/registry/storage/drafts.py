"""Files that appear whole or not at all: written as a draft, synced, renamed, and their folder synced."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

READ_ONLY = 0o444
"""Others may hold hard links to what is kept: nobody writes through one."""


class Draft:
    """A file being written in the drafts folder; it vanishes at the end of the `with` unless it was kept."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / secrets.token_hex(16)
        self.file = self.path.open("x+b", buffering=0)
        self.size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append."""
        view = memoryview(data)
        while view:
            done = self.file.write(view)
            view = view[done:]
        self.size += len(data)

    def keep(self, path: Path, *, durable: bool = True) -> None:
        """Give it its final name; what is there already stays, because its name tells its content.

        Durable is to outlive a power cut; what can be made again need not.
        """
        os.fchmod(self.file.fileno(), READ_ONLY)
        if durable:
            os.fsync(self.file.fileno())
        self.file.close()
        if path.exists():
            self.path.unlink()
        else:
            os.rename(self.path, path)
        if durable:
            sync_folder(path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.file.closed:
            self.file.close()
        self.path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
