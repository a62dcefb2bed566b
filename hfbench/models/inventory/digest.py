"""Hashes of files of any size, streamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError

CHUNK = 4 * 2**20
"""Bytes read at once. hashlib lets the interpreter go while it works through them, and between two one may stop."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Hashes in hexadecimal digits; the git id only where it was wanted."""

    sha256: str
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one state of a file from another, without reading it."""

    device: int
    inode: int
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """Of what `stat` says."""
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


class Stopped(Exception):
    """The hash is no longer wanted."""


def digest_of(
    path: Path, folder: Path, *, git: bool = False, read: Callable[[int], None], stopped: Callable[[], bool]
) -> tuple[Digest, Identity]:
    """Hash a plain file of a model's folder in memory of CHUNK bytes; `read` is told bytes as they are done.

    ModelError when it cannot be opened or read, or changes meanwhile; Stopped when `stopped` says so.
    """
    buffer = memoryview(bytearray(CHUNK))
    with open_regular(path, folder) as file:
        before = Identity.of(os.fstat(file.fileno()))
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        sha256, sha1 = hashlib.sha256(), hashlib.sha1(f"blob {before.size}\0".encode(), usedforsecurity=False)
        total = 0
        try:
            while total <= before.size and (count := file.readinto(buffer)):  # type: ignore[attr-defined]  # a raw file
                sha256.update(buffer[:count])
                if git:
                    sha1.update(buffer[:count])
                total += count
                read(count)
                if stopped():
                    raise Stopped
        except OSError as error:
            raise ModelError("unreadable", f"cannot be read ({error.strerror})", where=path) from None
        if Identity.of(os.fstat(file.fileno())) != before or total != before.size:
            raise ModelError("changed", "changed while it was read", where=path, remedy="hash it again")
    return Digest(sha256.hexdigest(), sha1.hexdigest() if git else None), before
