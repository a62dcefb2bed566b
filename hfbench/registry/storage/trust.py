"""Which stored files are known to be what their names say: a file is read once before it is handed out unread.

Disks rot without telling. Every worker hashes a file the first time it hands it out, again when the file is another
one by its size, time or number, and again after a day. What is found damaged is not handed out until it is replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hfbench.registry.storage.threads import in_a_thread

HOLDS = 24 * 3600.0
"""Seconds until a file is read again."""
REMEMBERED = 100_000


class DamagedError(Exception):
    """Stored content that is not what its name says: it is never served to its end."""


class Stamp(NamedTuple):
    """What tells one file from another without reading it."""

    number: int
    size: int
    changed: int


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a plain file; None when there is none, or something else has its name."""
    try:
        told = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(told.st_ino, told.st_size, told.st_mtime_ns) if stat.S_ISREG(told.st_mode) else None


class Trust:
    """What this worker knows of the files it read. `verify` off trusts all, but never what was found damaged."""

    def __init__(self, *, verify: bool = True) -> None:
        self._verify = verify
        self._sound: OrderedDict[Path, tuple[Stamp, float]] = OrderedDict()
        self._damaged: dict[Path, Stamp] = {}
        self._checks: dict[Path, asyncio.Task[None]] = {}

    def usable(self, path: Path, size: int) -> bool:
        """Whether a plain file of this size lies there that was not found damaged."""
        stamp = stamp_of(path)
        return stamp is not None and stamp.size == size and self._damaged.get(path) != stamp

    def knows(self, path: Path) -> bool:
        """Whether the file may be handed out unread."""
        if not self._verify:
            return True
        stamp, since = self._sound.get(path, (None, 0.0))
        return stamp is not None and stamp == stamp_of(path) and time.monotonic() - since < HOLDS

    def note(self, path: Path, stamp: Stamp | None = None) -> None:
        """Remember that a file is what it should be: it was just hashed, on its way in or out."""
        if (found := stamp or stamp_of(path)) is None:
            return
        self._damaged.pop(path, None)
        self._sound[path] = found, time.monotonic()
        self._sound.move_to_end(path)
        while len(self._sound) > REMEMBERED:
            self._sound.popitem(last=False)

    def note_damage(self, path: Path, stamp: Stamp | None) -> None:
        """Remember that a file is not what it should be."""
        self._sound.pop(path, None)
        if stamp is not None:
            self._damaged[path] = stamp

    async def check(self, path: Path, sha256: str, patience: float) -> bool:
        """Read a file through; DamagedError when it is another. False when that takes longer than the patience: it
        goes on, and who asks later has its result. All who ask at a time share one reading."""
        if (task := self._checks.get(path)) is None:
            task = self._checks[path] = asyncio.create_task(in_a_thread(self._read, path, sha256))
            task.add_done_callback(lambda done: self._over(path, done))
        done, _ = await asyncio.wait([task], timeout=patience)
        if done:
            await task
        return bool(done)

    def pieces(self, path: Path, sha256: str, pieces: Iterable[bytes], stamp: Stamp | None) -> Iterator[bytes]:
        """The pieces of a whole file, hashed on their way; the last one leaves only when all are right."""
        digest, held = hashlib.sha256(), b""
        for piece in pieces:
            digest.update(piece)
            if held:
                yield held
            held = piece
        self._judge(path, sha256, digest.hexdigest(), stamp)
        if held:
            yield held

    def _read(self, path: Path, sha256: str) -> None:
        stamp = stamp_of(path)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb", buffering=0) as file:
            self._judge(path, sha256, hashlib.file_digest(file, "sha256").hexdigest(), stamp)

    def _judge(self, path: Path, sha256: str, found: str, stamp: Stamp | None) -> None:
        if found == sha256:
            self.note(path, stamp)
        else:
            self.note_damage(path, stamp)
            raise DamagedError(f"{path} is not what its name says")

    def _over(self, path: Path, task: asyncio.Task[None]) -> None:
        self._checks.pop(path, None)
        if not task.cancelled():
            task.exception()  # seen: whoever waited was told
