"""Connections and transactions: reading sees one state, writing waits its turn and is durable when it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from hfbench.registry.fault_points import passed

BUSY_SECONDS = 30
"""How long a writer waits for another one on SQLite."""
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_SECONDS * 1000}")
SWEEPING = 0x68666265
"""The number of the lock on PostgreSQL that lets nobody write while something is removed."""
WRITES = "writes"
"""The execution option of a transaction that will write."""


class Database:
    """The hub's database: `reading()` and `writing()` give a connection in a transaction."""

    def __init__(self, url: str) -> None:
        self.engine = create_async_engine(url, pool_pre_ping=not url.startswith("sqlite"))
        self._turn: AbstractAsyncContextManager[object] = nullcontext()
        if self.is_sqlite:
            _speak_sqlite(self.engine)
            self._turn = asyncio.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite: one writer at a time, and no row locks."""
        return self.engine.dialect.name == "sqlite"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection for queries."""
        async with self.engine.connect() as connection:
            yield connection

    @asynccontextmanager
    async def sweeping(self) -> AsyncIterator[AsyncConnection]:
        """As `writing`, while no other transaction writes, of whatever process: for removing what nobody needs.

        Whoever decides by what a transaction sees, and removes in it, removes nothing that another one just took up.
        """
        async with self._changing("pg_advisory_xact_lock") as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A connection whose changes are committed at the end of the `with`, or undone by an exception.

        SQLite takes its write lock at the beginning, so that what was read cannot change before the commit, and within
        a process writers queue for it; on PostgreSQL queries say which rows they lock.
        """
        async with self._changing("pg_advisory_xact_lock_shared") as connection:
            yield connection

    @asynccontextmanager
    async def _changing(self, lock: str) -> AsyncIterator[AsyncConnection]:
        async with self._turn, self.engine.connect() as connection:
            await connection.execution_options(**{WRITES: True})
            async with connection.begin():
                if not self.is_sqlite:
                    await connection.exec_driver_sql(f"SELECT {lock}({SWEEPING})")
                yield connection
                passed("commit")
            passed("committed")

    async def close(self) -> None:
        """Give all connections back."""
        await self.engine.dispose()


def sync_url(url: str) -> URL:
    """The same database for a caller without an event loop."""
    parsed = make_url(url)
    return parsed.set(drivername="sqlite") if parsed.drivername.startswith("sqlite") else parsed


def _speak_sqlite(engine: AsyncEngine) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where sqlite3 guesses
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


__all__ = ["Database", "sync_url"]
