"""Rows read as pairs, and rows that may be there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

BATCH = 500


async def pairs(connection: AsyncConnection, query: Select[Any]) -> dict[Any, Any]:
    """What a query of two columns finds, the first as keys."""
    return {row[0]: row[1] for row in await connection.execute(query)}


async def add_missing(connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert the rows whose keys are not there; the others stay as they are."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).on_conflict_do_nothing()
    for start in range(0, len(rows), BATCH):
        await connection.execute(statement, list(rows[start : start + BATCH]))
