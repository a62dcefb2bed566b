"""Remembers hashes between runs, by device, inode, time of change and size."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from types import TracebackType

from hfbench.models.inventory.digest import Digest, Identity
from hfbench.paths import cache_root
from hfbench.side_table import open_table

FILE = "digests.sqlite"
SCHEMA = 1
TABLE = (
    "CREATE TABLE IF NOT EXISTS digests (device INTEGER, inode INTEGER, mtime_ns INTEGER, size INTEGER,"
    " sha256 TEXT NOT NULL, git_sha1 TEXT, at REAL, PRIMARY KEY (device, inode)) WITHOUT ROWID"
)
PROBE = "SELECT sha256, git_sha1, at FROM digests LIMIT 1"
MOST = 200_000
"""Files remembered; beyond it those hashed longest ago are forgotten."""

YOUNG_NS = 100_000_000
"""Nanoseconds: a file that changed so shortly before it was hashed may change again without a new time of change."""

WAIT = 0.5
"""Seconds for which hashes are gathered before they are written: a transaction each would take longer than hashing."""

_SIGN = 1 << 63


class DigestCache:
    """A table of hashes. It may be deleted at any time; where it cannot be written it lives in memory."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or cache_root() / FILE
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
        self._db = open_table(self.file, TABLE, SCHEMA, PROBE)
        self._db.execute("PRAGMA synchronous = OFF")  # what a loss of power damages is made again
        self._new: dict[tuple[int, int, int, int], tuple[str, str | None, float]] = {}
        self._written = time.monotonic()

    def __enter__(self) -> DigestCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write()
        oldest = "DELETE FROM digests WHERE at < (SELECT at FROM digests ORDER BY at DESC LIMIT 1 OFFSET ?)"
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.execute(oldest, (MOST,))
        self._db.close()

    def find(self, identity: Identity, *, git: bool) -> Digest | None:
        """The hashes of a file that has not changed since; None when one that is wanted is not known."""
        if (new := self._new.get(_key(identity))) is not None:
            return Digest(new[0], new[1]) if new[1] or not git else None
        query = "SELECT sha256, git_sha1 FROM digests WHERE device = ? AND inode = ? AND mtime_ns = ? AND size = ?"
        try:
            row = self._db.execute(query, _key(identity)).fetchone()
        except sqlite3.Error:
            return None
        return Digest(*row) if row and (row[1] or not git) else None

    def keep(self, identity: Identity, digest: Digest, begun_ns: int) -> None:
        """Remember the hashes of a file, soon on disk too; `begun_ns` is when reading began (time.time_ns)."""
        if begun_ns - identity.mtime_ns < YOUNG_NS:
            return
        self._new[_key(identity)] = (digest.sha256, digest.git_sha1, time.time())
        if time.monotonic() - self._written > WAIT:
            self._write()

    def _write(self) -> None:
        rows = [(*key, *told) for key, told in self._new.items()]
        with contextlib.suppress(sqlite3.Error), self._db:  # full or locked: the hash itself is none the worse
            self._db.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._new.clear()
        self._written = time.monotonic()


def _key(identity: Identity) -> tuple[int, int, int, int]:
    """Inodes and devices of 64 bits fit into SQLite's signed integers once they wrap around."""
    numbers = (identity.device, identity.inode, identity.mtime_ns, identity.size)
    device, inode, changed, size = ((number + _SIGN) % (2 * _SIGN) - _SIGN for number in numbers)
    return device, inode, changed, size
