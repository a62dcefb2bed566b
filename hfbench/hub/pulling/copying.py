"""Contents that another repository of the cache has already: copied in place of fetched, and verified all the same."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.partial import Partial
from hfbench.models.files import in_shared_store

LEAST = 1 << 20
"""Bytes of a content that is looked for elsewhere; a smaller one is fetched before all repositories were looked at."""
PIECE = 8 << 20
CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def content_elsewhere(cache: Path, file: HubFile) -> Path | None:
    """The blob of any repository of a cache that should be this content, None for none."""
    if file.size < LEAST:
        return None
    for blob in sorted(cache.glob(f"models--*/blobs/{file.etag}")):
        real = Path(os.path.realpath(blob))
        try:
            status = os.stat(real)
        except OSError:
            continue
        inside = real == Path(os.path.realpath(blob.parent), blob.name) or in_shared_store(real)
        if inside and stat.S_ISREG(status.st_mode) and status.st_size == file.size:
            return real
    return None


def copy_into(partial: Partial, source: Path, *, came: Callable[[int], None], unwanted: Callable[[], bool]) -> int:
    """Copy a content into a partial, by sharing its blocks where the file system can; the bytes that are there then.
    HfbenchError when the disk refuses."""
    at, size = 0, partial.file.size
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0  # it went away: it will be fetched
    with open(descriptor, "rb", buffering=0) as file:
        while at < size and not unwanted():
            count = _piece(file.fileno(), partial, at, min(PIECE, size - at))
            if count == 0:
                break
            partial.note(at, at + count)
            at += count
            came(count)
    return at


def _piece(source: int, partial: Partial, at: int, count: int) -> int:
    try:
        return os.copy_file_range(source, partial.fd, count, at, at)
    except OSError as error:
        if error.errno not in CANNOT:
            return 0
    try:
        data = os.pread(source, count, at)
    except OSError:
        return 0
    partial.write(memoryview(data), at)
    return len(data)
