"""Answers of environments, kept until the interpreter or a folder of its packages changes."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from hfbench.codec import decode, encode
from hfbench.environments.declared import Environment
from hfbench.environments.probed import Probed
from hfbench.paths import cache_root
from hfbench.side_table import open_table

SCHEMA = 1
FILE = "environments.sqlite"
CREATE = "CREATE TABLE IF NOT EXISTS environments (command TEXT PRIMARY KEY, files TEXT, asked REAL, told TEXT)"
PROBE = "SELECT command, files, asked, told FROM environments LIMIT 1"
BEHIND_A_PREFIX = 3600.0
"""Seconds that an answer is believed where no file of the environment can be looked at."""


class Remembered:
    """The table of answers; closed at the end of a `with` block. What cannot be written is asked again."""

    def __init__(self) -> None:
        folder = cache_root()
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self._db = open_table(folder / FILE, CREATE, SCHEMA, PROBE)

    def __enter__(self) -> Remembered:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()

    def get(self, environment: Environment) -> Probed | None:
        """The answer that still holds; None when there is none."""
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
            query = "SELECT files, asked, told FROM environments WHERE command = ?"
            row = self._db.execute(query, (_key(environment),)).fetchone()
            if row is None:
                return None
            told = decode(Probed, json.loads(row[2]))
            if environment.python is None:
                return told if 0 <= time.time() - row[1] < BEHIND_A_PREFIX else None
            return told if row[0] == _files(environment.python, told.folders) else None
        return None

    def put(self, environment: Environment, told: Probed) -> None:
        """Keep an answer."""
        files = _files(environment.python, told.folders) if environment.python else ""
        row = (_key(environment), files, time.time(), json.dumps(encode(told)))
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.execute("INSERT OR REPLACE INTO environments VALUES (?, ?, ?, ?)", row)


def _key(environment: Environment) -> str:
    return json.dumps(environment.command)


def _files(python: Path, folders: Iterable[str]) -> str:
    """Time of change and size of the interpreter, and times of the folders in which packages come and go."""
    found: list[object] = [os.path.realpath(python)]
    for path in (str(python), *folders):
        try:
            kind = os.stat(path)
            found.append([path, kind.st_mtime_ns, kind.st_size])
        except OSError:
            found.append([path, 0, 0])
    return json.dumps(found)
