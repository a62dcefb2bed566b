"""Copies a hub while it is served: first its database at one moment, then the files that database names.

What comes out is a whole hub on SQLite, which can be checked and served as it is. A later backup into the same folder
brings only files that are new; the database is replaced last, so that a backup that was cut off is the one before.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlalchemy import create_engine, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.errors import UsageError
from hfbench.registry.database.content import FILE
from hfbench.registry.database.engine import sync_url
from hfbench.registry.database.migrate import migrate
from hfbench.registry.database.schema import blobs, metadata, xorbs
from hfbench.registry.hub import Hub
from hfbench.registry.settings import Settings
from hfbench.registry.storage.drafts import sync_folder
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.sweeping import make_folders
from hfbench.registry.upkeep.facts import BackedUp, Tell
from hfbench.registry.upkeep.placing import Placer
from hfbench.registry.upkeep.session import is_served

ROWS = 500
NAMED = 100
"""Missing files that are named."""


async def back_up(hub: Hub, folder: Path, way: str, tell: Tell) -> BackedUp:
    """Copy the hub into a folder; UsageError when that is something else, or a hub that is being served."""
    settings = replace(hub.settings, folder=str(folder.absolute()), database="")
    layout = settings.layout
    _require_room_for(hub, settings)
    make_folders(layout)
    fresh = layout.database.with_suffix(".new")
    tell("database", 0, None, "")
    await _copy_database(hub, fresh)
    counts = await _copy_files(hub, fresh, layout, Placer(layout, way), tell)
    shutil.copyfile(hub.layout.secret, layout.secret, follow_symlinks=False)
    layout.secret.chmod(0o600)
    layout.settings.write_text(settings.toml(), encoding="utf-8")
    for left in (f"{layout.database}-wal", f"{layout.database}-shm"):
        Path(left).unlink(missing_ok=True)
    os.replace(fresh, layout.database)
    sync_folder(layout.root)
    return replace(counts, folder=settings.folder)


def _require_room_for(hub: Hub, settings: Settings) -> None:
    layout, folder = settings.layout, Path(settings.folder)
    if folder.resolve() == hub.layout.root.resolve() or hub.layout.root.resolve() in folder.resolve().parents:
        raise UsageError("a backup cannot lie in the hub itself", where=folder, remedy="name another folder")
    if folder.exists() and any(folder.iterdir()) and not layout.database.exists() and not layout.secret.exists():
        raise UsageError("the folder holds something that is no backup", where=folder, remedy="name an empty folder")
    if layout.lock.exists() and is_served(settings):
        raise UsageError("a server runs on the hub in this folder", where=folder, remedy="name another folder")


async def _copy_database(hub: Hub, fresh: Path) -> None:
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY, 0o600))
    if hub.database.is_sqlite:
        await asyncio.to_thread(_copy_sqlite, hub.layout.database, fresh)
    else:
        await _copy_rows(hub, fresh)
    with fresh.open("rb") as file:
        os.fsync(file.fileno())


def _copy_sqlite(source: Path, target: Path) -> None:
    """All pages in one step: a reader's view, whatever is written meanwhile."""
    with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
        here.backup(there)


async def _copy_rows(hub: Hub, fresh: Path) -> None:
    """Every row of another database, all as of one moment, into a SQLite of the same schema."""
    url = f"sqlite+aiosqlite:///{fresh}"
    await asyncio.to_thread(migrate, url)
    engine = create_engine(sync_url(url))
    try:
        async with hub.database.engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ")
            with engine.begin() as target:
                for table in metadata.sorted_tables:
                    async for rows in _rows(connection, table):
                        await asyncio.to_thread(target.execute, insert(table), rows)
    finally:
        engine.dispose()


async def _rows(connection: AsyncConnection, table: object) -> AsyncIterator[list[dict[str, object]]]:
    async with connection.stream(select(table)) as result:  # type: ignore[call-overload]
        async for some in result.mappings().partitions(ROWS):
            yield [dict(row) for row in some]


async def _copy_files(hub: Hub, fresh: Path, layout: Layout, placer: Placer, tell: Tell) -> BackedUp:
    wanted = await asyncio.to_thread(_wanted, fresh, hub.layout, layout)
    total = sum(size for _, _, size in wanted)
    known = done = 0
    missing: list[str] = []
    for source, target, size in wanted:
        tell("files", done, total, "B")
        if target.exists() and target.stat().st_size == size:
            known += 1
        else:
            try:
                await asyncio.to_thread(placer.place, source, target)
            except FileNotFoundError:
                missing.append(target.name)
        done += size
    tell("files", total, total, "B")
    return BackedUp(
        folder="",
        files=len(wanted),
        bytes=total,
        linked=placer.counts["link"],
        cloned=placer.counts["clone"],
        copied=placer.counts["copy"],
        known=known,
        missing=tuple(missing[:NAMED]),
    )


def _wanted(database: Path, source: Layout, target: Layout) -> list[tuple[Path, Path, int]]:
    """Every file the copied database names: where it lies, where it goes, its size."""
    engine = create_engine(f"sqlite:///{database}")
    try:
        with engine.connect() as connection:
            files = connection.execute(select(blobs.c.sha256, blobs.c.size).where(blobs.c.place == FILE))
            found = [(source.blob(name), target.blob(name), size) for name, size in files]
            packed = connection.execute(select(xorbs.c.id, xorbs.c.size))
            return found + [(source.xorb(name), target.xorb(name), size) for name, size in packed]
    finally:
        engine.dispose()
