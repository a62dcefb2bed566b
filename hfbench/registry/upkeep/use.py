"""A hub in numbers: what its repositories hold, what is stored for it, and what that saves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.content import FILE, INLINE
from hfbench.registry.database.repos import count_repos
from hfbench.registry.database.room import used_bytes
from hfbench.registry.database.schema import accounts, blobs, commits, namespaces, repo_blobs, repos, tokens, xorbs
from hfbench.registry.hub import Hub
from hfbench.registry.upkeep.facts import NamespaceUse, RepoUse, Use
from hfbench.registry.upkeep.session import is_served

LARGEST = 20


async def measure(hub: Hub, most: int = LARGEST) -> Use:
    """The numbers of a hub, by its database and by the sizes of its files; of so many repositories, the largest."""
    settings, root = hub.settings, hub.layout.root
    async with hub.database.reading() as connection:
        told = await _number(connection, select(func.sum(blobs.c.size)).join(repo_blobs, _same_blob()))
        inline = await _number(connection, select(func.sum(blobs.c.size)).where(blobs.c.place == INLINE))
        files = await _number(connection, select(func.sum(blobs.c.size)).where(blobs.c.place == FILE))
        packed = await _number(connection, select(func.sum(xorbs.c.size)))
        spaces = await _namespaces(connection, settings.default_quota)
        return Use(
            folder=settings.folder,
            database="SQLite" if hub.database.is_sqlite else "PostgreSQL",
            storage=settings.storage,
            serving=is_served(settings),
            repos=await count_repos(connection),
            commits=await _count(connection, commits),
            users=await _count(connection, accounts),
            tokens=await _number(connection, select(func.count()).where(tokens.c.revoked.is_(None))),
            blobs=await _count(connection, blobs),
            told_bytes=told,
            kept_bytes=inline + files + packed,
            blob_bytes=files,
            xorb_bytes=packed,
            cache_bytes=_folder_bytes(root / "cache"),
            upload_bytes=_folder_bytes(hub.layout.uploads) + _folder_bytes(hub.layout.drafts),
            damaged_bytes=_folder_bytes(root / "damaged"),
            free_bytes=shutil.disk_usage(root).free,
            namespaces=spaces,
            largest=await _largest(connection, most),
        )


def _same_blob() -> Any:
    return repo_blobs.c.sha256 == blobs.c.sha256


async def _number(connection: AsyncConnection, query: Any) -> int:
    return int((await connection.execute(query)).scalar() or 0)


async def _count(connection: AsyncConnection, table: Any) -> int:
    return await _number(connection, select(func.count()).select_from(table))


async def _namespaces(connection: AsyncConnection, default_quota: int) -> tuple[NamespaceUse, ...]:
    counted = (
        select(namespaces.c.id, namespaces.c.name, namespaces.c.quota, func.count(repos.c.id))
        .join(repos, repos.c.namespace_id == namespaces.c.id)
        .group_by(namespaces.c.id, namespaces.c.name, namespaces.c.quota)
    )
    found = [
        NamespaceUse(name, count, await used_bytes(connection, id), default_quota if quota is None else quota)
        for id, name, quota, count in list(await connection.execute(counted))
    ]
    return tuple(sorted(found, key=lambda each: (-each.bytes, each.name)))


async def _largest(connection: AsyncConnection, most: int) -> tuple[RepoUse, ...]:
    held = (
        select(repo_blobs.c.repo_id, func.sum(blobs.c.size).label("bytes"))
        .join(blobs, _same_blob())
        .group_by(repo_blobs.c.repo_id)
        .subquery()
    )
    made = select(commits.c.repo_id, func.count().label("commits")).group_by(commits.c.repo_id).subquery()
    size = func.coalesce(held.c.bytes, 0)
    query = (
        select(repos.c.kind, namespaces.c.name, repos.c.name, repos.c.private, made.c.commits, size, repos.c.downloads)
        .join(namespaces, namespaces.c.id == repos.c.namespace_id)
        .join(made, made.c.repo_id == repos.c.id)
        .outerjoin(held, held.c.repo_id == repos.c.id)
        .order_by(size.desc(), repos.c.id)
        .limit(most)
    )
    return tuple(
        RepoUse(kind, f"{namespace}/{name}", private, count, int(total), downloads)
        for kind, namespace, name, private, count, total, downloads in await connection.execute(query)
    )


def _folder_bytes(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name), follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
    return total
