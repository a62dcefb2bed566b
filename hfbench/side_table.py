"""Tables in SQLite files that only save work: made again when damaged, kept in memory where nothing can be written."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path


def open_table(file: Path, create: str, schema: int, probe: str) -> sqlite3.Connection:
    """The table of a file, open for any thread; of a file that is damaged, foreign or of another `schema` a new one.

    `create` makes the table unless it is there, and `probe` is a query that fails on a table of another shape.
    """
    for _ in range(2):
        try:
            return _opened(str(file), create, schema, probe)
        except sqlite3.OperationalError:
            break  # read-only, full, locked or absent: memory will do
        except sqlite3.DatabaseError:
            discard(file)
    return _opened(":memory:", create, schema, probe)


def table_in_memory(create: str, schema: int, probe: str) -> sqlite3.Connection:
    """The same table without a file."""
    return _opened(":memory:", create, schema, probe)


def discard(file: Path) -> None:
    """Delete a file that is of no use; whoever opens it next makes it again."""
    with contextlib.suppress(OSError):
        file.unlink()


def _opened(where: str, create: str, schema: int, probe: str) -> sqlite3.Connection:
    db = sqlite3.connect(where, timeout=5, check_same_thread=False)
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] not in (0, schema):
            raise sqlite3.DatabaseError("another version's table")
        db.execute(create)
        db.execute(f"PRAGMA user_version = {schema}")
        db.execute(probe).fetchone()
        db.commit()
    except sqlite3.Error:
        db.close()
        raise
    return db
