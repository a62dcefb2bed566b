"""What the latest trial load of each engine came to on this machine, kept until the engine is built anew."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from hfbench.engines.trial.told import Trial
from hfbench.paths import cache_root
from hfbench.side_table import open_table

SCHEMA = 1
MOST_FILES = 1_000
"""Of one engine that are looked at."""

FILE = "trials.sqlite"
CREATE = (
    "CREATE TABLE IF NOT EXISTS trials (engine TEXT PRIMARY KEY, file TEXT, at REAL, outcome TEXT, found TEXT,"
    " environment TEXT)"
)
PROBE = "SELECT engine, file, at, outcome, found, environment FROM trials LIMIT 1"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One trial load. `at` is seconds since the epoch, `environment` empty for the Python of hfbench."""

    at: float
    outcome: str
    found: str
    environment: str = ""


class Trials:
    """The table; closed at the end of a `with` block. What cannot be written is not remembered."""

    def __init__(self) -> None:
        folder = cache_root()
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self._db = open_table(folder / FILE, CREATE, SCHEMA, PROBE)

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()

    def latest(self, engine: Path) -> Tried | None:
        """The trial of an engine that still stands there as it was tried."""
        query = "SELECT file, at, outcome, found, environment FROM trials WHERE engine = ?"
        with contextlib.suppress(sqlite3.Error, ValueError):
            row = self._db.execute(query, (os.path.realpath(engine),)).fetchone()
            if row and row[0] == _identity(engine):
                return Tried(at=float(row[1]), outcome=str(row[2]), found=str(row[3]), environment=str(row[4]))
        return None

    def keep(self, engine: Path, trial: Trial, environment: str) -> None:
        """Remember a trial in place of the one before; one that could not be made tells nothing."""
        if trial.outcome == "could not":
            return
        row = (os.path.realpath(engine), _identity(engine), time.time(), trial.outcome, trial.found, environment)
        told = tuple(each.encode("utf-8", "replace").decode() if isinstance(each, str) else each for each in row)
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.execute("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?)", told)


def last_change(engine: Path) -> float:
    """When a file of an engine was changed last, in seconds since the epoch; 0 where there is none."""
    return max((max(told.st_mtime, told.st_ctime) for _, told in _files(engine)), default=0.0)


def _identity(engine: Path) -> str:
    """A hash over the folder and the names, sizes and times of change of its files: a build and an edit give a new
    one."""
    told = [_told(name, each) for name, each in _files(engine)]
    with contextlib.suppress(OSError):
        at = engine.stat()
        told.append(f"{at.st_dev}:{at.st_ino}:{at.st_mtime_ns}")
    return sha256("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest() if told else ""


def _told(name: str, file: os.stat_result) -> str:
    return f"{name}:{file.st_ino}:{file.st_mtime_ns}:{file.st_ctime_ns}:{file.st_size}"


def _files(engine: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of an engine's folder, or the file that it is."""
    try:
        entries = [engine] if engine.is_file() else sorted(engine.iterdir())[:MOST_FILES]
    except (OSError, ValueError):
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            if stat.S_ISREG((told := entry.stat()).st_mode):
                yield entry.name, told
