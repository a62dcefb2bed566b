"""Locks of a cache as stock clients take them, and who holds one."""

from __future__ import annotations

import contextlib
import os
import warnings
from pathlib import Path
from typing import Any

MODE = 0o664
"""Several people who share a cache wait for each other."""


class BlobLock:
    """The lock of one blob, tried and never waited for. Where a file system has no flock a marker file stands in, as
    with stock clients; `soft` tells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.soft = False
        self._lock: Any = None

    def take(self) -> bool:
        """Hold it from now on, unless somebody else does."""
        from filelock import FileLock, SoftFileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        for kind in (FileLock, SoftFileLock):
            lock = kind(str(self.path), timeout=0, mode=MODE, thread_local=False)
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    lock.acquire()
            except Timeout:
                return False
            except (NotImplementedError, OSError) as error:
                if kind is SoftFileLock or not _lacks_flock(error):
                    raise
                continue
            self._lock, self.soft = lock, kind is SoftFileLock or any("flock" in str(each.message) for each in told)
            return True
        return False

    def release(self) -> None:
        """Let it go."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()
            self._lock = None


def holder_of(path: Path) -> int | None:
    """The process of this machine that holds the flock of a file; None when there is none or it cannot be told."""
    try:
        status = os.stat(path)
        wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        with open("/proc/locks", encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if "->" not in words and wanted in words and "FLOCK" in words:
                    pid = int(words[words.index(wanted) - 1])
                    return pid if pid > 0 else None
    except (OSError, ValueError):
        pass
    return None


def _lacks_flock(error: BaseException) -> bool:
    import errno

    return isinstance(error, NotImplementedError) or getattr(error, "errno", 0) in (
        errno.ENOSYS,
        errno.ENOTSUP,
        errno.ENOLCK,
    )
