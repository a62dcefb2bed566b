"""Room in a namespace: what it may hold, what it holds, and what uploads under way were promised."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from sqlalchemy import delete, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.rows import add_or_renew, portions
from hfbench.registry.database.schema import (
    blobs,
    namespaces,
    repo_blobs,
    repo_xorbs,
    repos,
    reservations,
    xet_file_xorbs,
    xorbs,
)


async def quota_of(connection: AsyncConnection, namespace: int) -> int | None:
    """The namespace's own limit in bytes, or None."""
    return (await connection.execute(select(namespaces.c.quota).where(namespaces.c.id == namespace))).scalar()


async def lock_namespace(connection: AsyncConnection, namespace: int) -> None:
    """Let no other transaction promise room in the namespace until this one ends."""
    await connection.execute(select(namespaces.c.id).where(namespaces.c.id == namespace).with_for_update())


async def used_bytes(connection: AsyncConnection, namespace: int) -> int:
    """Bytes of all blobs the namespace's repositories hold, each counted once, and of xorbs no file is made of yet."""
    own = repos.c.namespace_id == namespace
    sent = select(repo_xorbs.c.xorb).join(repos, repos.c.id == repo_xorbs.c.repo_id).where(own)
    named = exists().where(xet_file_xorbs.c.xorb == xorbs.c.id)
    unnamed = select(func.coalesce(func.sum(xorbs.c.size), 0)).where(xorbs.c.id.in_(sent), ~named)
    return await file_bytes(connection, namespace) + int((await connection.execute(unnamed)).scalar_one())


async def file_bytes(connection: AsyncConnection, namespace: int) -> int:
    """Bytes of all blobs the namespace's repositories hold, each counted once."""
    own = repos.c.namespace_id == namespace
    held = select(repo_blobs.c.sha256).join(repos, repos.c.id == repo_blobs.c.repo_id).where(own)
    query = select(func.coalesce(func.sum(blobs.c.size), 0)).where(blobs.c.sha256.in_(held))
    return int((await connection.execute(query)).scalar_one())


async def promised_bytes(connection: AsyncConnection, namespace: int, but: Collection[str] = ()) -> int:
    """Bytes uploads into the namespace were promised and that have not arrived, each content once, without `but`."""
    own = repos.c.namespace_id == namespace
    held = select(repo_blobs.c.sha256).join(repos, repos.c.id == repo_blobs.c.repo_id).where(own)
    query = (
        select(reservations.c.content, func.max(reservations.c.size))
        .join(repos, repos.c.id == reservations.c.repo_id)
        .where(own, reservations.c.until > time.time(), ~reservations.c.content.in_(held))
        .group_by(reservations.c.content)
    )
    return sum(size for content, size in await connection.execute(query) if content not in but)


async def promise(connection: AsyncConnection, repo: int, sizes: Mapping[str, int], until: float) -> None:
    """Keep room for contents of a repository until a time; what was promised before is renewed."""
    await connection.execute(delete(reservations).where(reservations.c.until < time.time()))
    rows = [{"repo_id": repo, "content": name, "size": size, "until": until} for name, size in sorted(sizes.items())]
    await add_or_renew(connection, reservations, rows, ["size", "until"])


async def end_promise(connection: AsyncConnection, repo: int, contents: Collection[str]) -> None:
    """These contents arrived, or will not."""
    for some in portions(contents):
        own = reservations.c.repo_id == repo
        await connection.execute(delete(reservations).where(own, reservations.c.content.in_(some)))
