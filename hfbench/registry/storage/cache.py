"""The bounded cache of files rebuilt from xorbs: the longest unused goes first, what is in use stays."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hfbench.registry.storage.layout import FANS, Layout
from hfbench.units import MIB

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
IN_USE = 600.0
"""Seconds since its last use during which a file is not removed: a server may be about to open it."""
ABOUT_TO_BE_OPENED = 10.0
MOST_RESERVED = 256 * MIB
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
        """Whether a file of this size is worth keeping, and the disk has room for it, or would have without files that
        are longer unused: one alone must not turn out all others."""
        if size > self.limit // 2:
            return False
        lacking = size + reserve(self.layout) - free_bytes(self.layout)
        return lacking <= 0 or lacking <= sum(told.size for told in _unused(self.layout, IN_USE))

    def distrust(self) -> bool:
        """Empty the cache when the machine was restarted: its files are not synced, and a power cut may have cut them.

        True when it was emptied. Only while no server runs on the folder.
        """
        note, boot = self.layout.root / "cache" / "boot-id", BOOT_ID.read_text()
        if note.exists() and note.read_text() == boot:
            return False
        for told in _files(self.layout):
            told.path.unlink()
        note.write_text(boot)
        return True

    def shrink(self, size: int = 0) -> int:
        """Remove the longest unused files until the limit holds and the disk has room for `size` bytes beside its
        reserve; the bytes that were freed."""
        excess = sum(told.size for told in _files(self.layout)) - self.limit
        lacking = size + reserve(self.layout) - free_bytes(self.layout)
        return _remove_unused(self.layout, max(excess, lacking), IN_USE)


class _Cached(NamedTuple):
    """A file of the cache, the longest unused first."""

    used: float
    size: int
    path: Path


def free_bytes(layout: Layout) -> int:
    """Bytes free on the disk of the hub."""
    told = os.statvfs(layout.root)
    return told.f_bavail * told.f_frsize


def reserve(layout: Layout) -> int:
    """Bytes that the cache leaves free, for what cannot be made again: a twentieth of the disk, 256 MiB at most."""
    told = os.statvfs(layout.root)
    return min(MOST_RESERVED, told.f_blocks * told.f_frsize // 20)


def make_room(layout: Layout, wanted: int) -> int:
    """Remove files of the cache for something that cannot be made again, on a full disk; the bytes that were freed.

    Whoever reads one goes on reading; only one that is about to be opened stays.
    """
    return _remove_unused(layout, wanted, ABOUT_TO_BE_OPENED)


def _remove_unused(layout: Layout, wanted: int, seconds: float) -> int:
    freed = 0
    for told in _unused(layout, seconds) if wanted > 0 else ():
        if freed >= wanted:
            break
        with suppress(FileNotFoundError):
            told.path.unlink()
            freed += told.size
    return freed


def _unused(layout: Layout, seconds: float) -> list[_Cached]:
    """Files that were not used for so long, the longest unused first."""
    before = time.time() - seconds
    return sorted(told for told in _files(layout) if told.used < before)


def _files(layout: Layout) -> Iterator[_Cached]:
    for fan in FANS:
        with suppress(FileNotFoundError), os.scandir(layout.root / "cache" / fan) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    told = entry.stat()
                    yield _Cached(told.st_atime, told.st_size, Path(entry.path))
