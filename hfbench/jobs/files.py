"""Opens files of a folder that anybody may have filled: never waits for one, never reads one without bound."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_JSON = 64 << 20
"""Bytes of a JSON file that is read; a larger one is no file of ours."""


def open_regular(path: Path) -> int:
    """A descriptor of a plain file, open for reading; OSError for a link, a pipe, a device or a folder."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, most: int = MOST_JSON) -> bytes:
    """All of a plain file; OSError when it is none or holds more than `most` bytes."""
    with open(open_regular(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data
