"""The kernel's page cache over a file: emptied, filled, and looked at."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from hfbench.gpu.reading import Unavailable, Value

STRETCH = 2**30
"""Bytes mapped at a time to look at."""
BLOCK = 2**20
"""Bytes read at a time: enough for any disk, and little enough to stay in a processor's cache."""
COLD, WARM = 0.01, 0.99
"""Share of the bytes that may at most be cached where a run counts as cold, and must be where it counts as warm."""
TRIES = 3
HIDDEN = Unavailable("only the owner of a file, or who may write it, is told what of it is cached")

_IN_MEMORY = bytes(page & 1 for page in range(256))
"""The least significant bit of what mincore(2) says of a page, the others being reserved."""
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident(paths: Iterable[Path]) -> Value:
    """The share of the bytes that the page cache holds, by mincore(2), from 0 to 1.

    The kernel answers 1 to whoever may not know (Linux 5.2 and later); that is a reason here. OSError where it refuses.
    """
    pages = cached = 0
    for path in paths:
        if not (os.access(path, os.W_OK) or path.stat().st_uid == os.geteuid()):
            return HIDDEN
        found, of = _pages(path)
        cached, pages = cached + found, pages + of
    return cached / pages if pages else 0.0


def drop(paths: Iterable[Path]) -> Value:
    """Take the files out of the page cache, as far as the kernel lets them go; the share that is still held.

    What was not written yet is written first: POSIX_FADV_DONTNEED passes over dirty pages. Mapped pages stay.
    """
    files = list(paths)
    left: Value = 0.0
    for _ in range(TRIES):
        for path in files:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
        left = resident(files)
        if isinstance(left, Unavailable) or left <= COLD:
            break
    return left


def warm(paths: Iterable[Path]) -> Value:
    """Read the files where the page cache does not hold them yet; the share it holds then."""
    files = list(paths)
    held = resident(files)
    if not isinstance(held, Unavailable) and held >= WARM:
        return held
    for path in files:
        read_through(path)
    return resident(files)


def read_through(path: Path) -> int:
    """Read a file from its begin to its end into one buffer; its bytes. This is what every loader is measured by."""
    buffer = bytearray(BLOCK)
    total = 0
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while count := file.readinto(buffer):
            total += count
    return total


def _pages(path: Path) -> tuple[int, int]:
    """Pages of a file in the cache, and all of them."""
    cached = pages = 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for begin in range(0, size, STRETCH):
            length = min(STRETCH, size - begin)
            count = -(-length // mmap.PAGESIZE)
            address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), begin)
            if address == _FAILED:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
            try:
                answer = (ctypes.c_ubyte * count)()
                if _libc.mincore(address, length, answer):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
            finally:
                _libc.munmap(address, length)
            cached += bytes(answer).translate(_IN_MEMORY).count(1)
            pages += count
    return cached, pages
