"""Rows read as pairs, and rows that may be there already."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Select, Table, case
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

BATCH = 500
LOOKUP = 400
"""Keys of one query: within what every SQLite takes."""
T = TypeVar("T")


async def pairs(connection: AsyncConnection, query: Select[Any]) -> dict[Any, Any]:
    """What a query of two columns finds, the first as keys."""
    return {row[0]: row[1] for row in await connection.execute(query)}


async def add_missing(connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert the rows whose keys are not there; the others stay as they are."""
    await _each(connection, _insert(connection, table).on_conflict_do_nothing(), rows)


async def add_or_renew(
    connection: AsyncConnection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    renewed: Sequence[str],
    instead: Mapping[str, str] | None = None,
) -> None:
    """Insert the rows; of those that are there, set the renewed columns, and replace the values of `instead`.

    `instead` maps a column to the value that gives way to the new one: any other value stays.
    """
    statement = _insert(connection, table)
    given = statement.excluded
    changes = {name: given[name] for name in renewed}
    changes |= {
        name: case((table.c[name] == old, given[name]), else_=table.c[name]) for name, old in (instead or {}).items()
    }
    keys = list(table.primary_key.columns)
    await _each(connection, statement.on_conflict_do_update(index_elements=keys, set_=changes), rows)


def portions(keys: Collection[T], most: int = LOOKUP) -> Iterable[Sequence[T]]:
    """The keys in order, so many at a time as every SQLite takes in one query."""
    each = sorted(set(keys))  # type: ignore[type-var]
    return (each[start : start + most] for start in range(0, len(each), most))


def _insert(connection: AsyncConnection, table: Table) -> Any:
    return (sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert)(table)


async def _each(connection: AsyncConnection, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), BATCH):
        await connection.execute(statement, list(rows[start : start + BATCH]))
