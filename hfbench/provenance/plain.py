"""Small files that somebody else may have put there, read without waiting for a pipe or a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_plain(path: Path, most: int) -> bytes:
    """At most so many bytes of a plain file, whatever links lead to it; OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)
