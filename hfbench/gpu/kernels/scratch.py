"""A folder for files that nobody wants later, removed by the next one when whoever made it was killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from hfbench.jobs.directory import take_lock

LOCK = ".held"
YOUNG = 60.0
"""Seconds in which a folder is left alone: it may not be locked yet."""


class Scratch:
    """A temporary folder, `name` its path; its lock is held as long as this process lives or until `cleanup`."""

    def __init__(self, prefix: str) -> None:
        _sweep(prefix)
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self.name = self._folder.name
        self._lock: int | None = None
        with suppress(OSError):  # a disk without locks: then nobody takes the folder for a left one either
            self._lock = take_lock(Path(self.name) / LOCK)

    def cleanup(self) -> None:
        """Remove the folder and let go of its lock."""
        self._folder.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _sweep(prefix: str) -> None:
    """Remove folders of ours that nobody holds any more."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    status, lock = entry.stat(follow_symlinks=False), Path(entry.path) / LOCK
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    if time.time() - lock.stat().st_mtime < YOUNG:
        return
    if (held := take_lock(lock)) is not None:
        shutil.rmtree(entry.path, ignore_errors=True)
        os.close(held)
