"""The bounded cache of files rebuilt from xorbs: the longest unused goes first, what is in use stays."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hfbench.registry.storage.layout import FANS, Layout

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
IN_USE = 600.0
"""Seconds since its last use during which a file is not removed: a server may be about to open it."""
NOTED_EVERY = 60.0
"""Seconds between two notes of the use of one file."""


class Cache:
    """The cache folder, at most `limit` bytes. Several processes may share it: the files are all there is to know."""

    def __init__(self, layout: Layout, limit: int) -> None:
        self.layout, self.limit = layout, limit

    def find(self, sha256: str) -> Path | None:
        """The rebuilt file, noted as used, or None."""
        path = self.layout.cached(sha256)
        try:
            told = path.lstat()
            if not stat.S_ISREG(told.st_mode):
                return None
            if (now := time.time_ns()) - told.st_atime_ns > NOTED_EVERY * 1e9:
                os.utime(path, ns=(now, told.st_mtime_ns))
        except FileNotFoundError:
            return None
        return path

    def admits(self, size: int) -> bool:
        """Whether a file of this size is worth keeping: one alone must not turn out all others."""
        return size <= self.limit // 2

    def distrust(self) -> bool:
        """Empty the cache when the machine was restarted: its files are not synced, and a power cut may have cut them.

        True when it was emptied. Only while no server runs on the folder.
        """
        note, boot = self.layout.root / "cache" / "boot-id", BOOT_ID.read_text()
        if note.exists() and note.read_text() == boot:
            return False
        for _, _, path in self._files():
            path.unlink()
        note.write_text(boot)
        return True

    def shrink(self) -> int:
        """Remove the longest unused files until the limit holds; the bytes that were freed."""
        files = sorted(self._files())
        excess = sum(size for _, size, _ in files) - self.limit
        freed = 0
        for used, size, path in files:
            if freed >= excess or time.time() - used < IN_USE:
                break
            with suppress(FileNotFoundError):
                path.unlink()
                freed += size
        return freed

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for fan in FANS:
            with suppress(FileNotFoundError), os.scandir(self.layout.root / "cache" / fan) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        told = entry.stat()
                        yield told.st_atime, told.st_size, Path(entry.path)
