"""What is still needed: commits that a branch or tag reaches, content that commits name, and rows nobody refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, exists, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.rows import portions
from hfbench.registry.database.schema import (
    blobs,
    commits,
    inline_blobs,
    refs,
    repo_blobs,
    repo_xorbs,
    repos,
    tree_facts,
    trees,
    xet_file_xorbs,
    xet_files,
    xorb_chunks,
    xorbs,
)


class CommitRow(NamedTuple):
    """A commit as far as it matters for what is needed."""

    repo: int
    id: str
    parent: str | None
    tree: str
    at: float


async def repo_ids(connection: AsyncConnection) -> list[int]:
    """Every repository."""
    return list((await connection.execute(select(repos.c.id).order_by(repos.c.id))).scalars())


async def commit_rows(connection: AsyncConnection, *clauses: ColumnElement[bool]) -> list[CommitRow]:
    """Commits for which all clauses hold, the newest first."""
    columns = (commits.c.repo_id, commits.c.id, commits.c.parent, commits.c.tree, commits.c.at)
    query = select(*columns).where(*clauses).order_by(commits.c.at.desc())
    return [CommitRow(*row) for row in await connection.execute(query)]


async def reachable(connection: AsyncConnection, repo: int, found: Iterable[CommitRow]) -> set[str]:
    """Those of a repository's commits that a branch or tag is at, or that come before one."""
    before = {row.id: row.parent for row in found}
    waiting = list((await connection.execute(select(refs.c.commit).where(refs.c.repo_id == repo))).scalars())
    seen: set[str] = set()
    while waiting:
        id = waiting.pop()
        if id in before and id not in seen:
            seen.add(id)
            if parent := before[id]:
                waiting.append(parent)
    return seen


async def remove_commits(connection: AsyncConnection, repo: int, ids: Collection[str]) -> None:
    """Remove commits of a repository."""
    for some in portions(ids):
        await connection.execute(delete(commits).where(commits.c.repo_id == repo, commits.c.id.in_(some)))


async def all_held(connection: AsyncConnection, repo: int) -> set[str]:
    """The blobs that a repository holds."""
    query = select(repo_blobs.c.sha256).where(repo_blobs.c.repo_id == repo)
    return set((await connection.execute(query)).scalars())


async def old_holds(connection: AsyncConnection, repo: int, before: float) -> tuple[set[str], set[str]]:
    """The blobs and xorbs that a repository holds since a time."""
    held = select(repo_blobs.c.sha256).where(repo_blobs.c.repo_id == repo, repo_blobs.c.created < before)
    sent = select(repo_xorbs.c.xorb).where(repo_xorbs.c.repo_id == repo, repo_xorbs.c.created < before)
    return set((await connection.execute(held)).scalars()), set((await connection.execute(sent)).scalars())


async def xorbs_of(connection: AsyncConnection, hashes: Collection[str]) -> set[str]:
    """The xorbs of which these blobs are made."""
    query = select(xet_file_xorbs.c.xorb).join(xet_files, xet_files.c.id == xet_file_xorbs.c.file).distinct()
    found: set[str] = set()
    for some in portions(hashes):
        found.update((await connection.execute(query.where(xet_files.c.sha256.in_(some)))).scalars())
    return found


async def drop_holds(
    connection: AsyncConnection,
    blob_holds: Collection[tuple[int, str]],
    xorb_holds: Collection[tuple[int, str]],
    before: float,
) -> None:
    """Take from repositories what they hold since a time: what was renewed meanwhile stays."""
    for table, column, pairs in (
        (repo_blobs, repo_blobs.c.sha256, blob_holds),
        (repo_xorbs, repo_xorbs.c.xorb, xorb_holds),
    ):
        for some in portions(pairs):
            which = tuple_(table.c.repo_id, column).in_(some)
            await connection.execute(delete(table).where(which, table.c.created < before))


def unheld_blobs(before: float) -> ColumnElement[bool]:
    """Blobs since a time that no repository holds, as a clause."""
    return (blobs.c.created < before) & ~exists().where(repo_blobs.c.sha256 == blobs.c.sha256)


def unheld_xorbs(before: float) -> ColumnElement[bool]:
    """Xorbs since a time that no repository holds, as a clause."""
    return (xorbs.c.created < before) & ~exists().where(repo_xorbs.c.xorb == xorbs.c.id)


async def remove_blobs(connection: AsyncConnection, hashes: Collection[str], before: float) -> list[str]:
    """Remove those of the blobs that nobody holds, with what is known of them; the removed ones."""
    gone: list[str] = []
    for some in portions(hashes):
        query = delete(blobs).where(blobs.c.sha256.in_(some), unheld_blobs(before)).returning(blobs.c.sha256)
        gone += (await connection.execute(query)).scalars()
    for some in portions(gone):
        await connection.execute(delete(inline_blobs).where(inline_blobs.c.sha256.in_(some)))
        await remove_files(connection, xet_files.c.sha256.in_(some))
    return gone


async def remove_files(connection: AsyncConnection, clause: ColumnElement[bool]) -> None:
    """Forget how some files are made of xorbs."""
    chosen = select(xet_files.c.id).where(clause)
    await connection.execute(delete(xet_file_xorbs).where(xet_file_xorbs.c.file.in_(chosen)))
    await connection.execute(delete(xet_files).where(clause))


async def remove_xorbs(connection: AsyncConnection, names: Collection[str], before: float) -> list[str]:
    """Remove those of the xorbs that no file is made of and nobody holds; the removed ones."""
    unneeded = unheld_xorbs(before) & ~exists().where(xet_file_xorbs.c.xorb == xorbs.c.id)
    gone: list[str] = []
    for some in portions(names):
        query = delete(xorbs).where(xorbs.c.id.in_(some), unneeded).returning(xorbs.c.id)
        gone += (await connection.execute(query)).scalars()
    for some in portions(gone):
        await connection.execute(delete(xorb_chunks).where(xorb_chunks.c.xorb.in_(some)))
    return gone


async def remove_trees(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Remove trees with the facts read from them."""
    for some in portions(ids):
        await connection.execute(delete(trees).where(trees.c.id.in_(some)))
        await connection.execute(delete(tree_facts).where(tree_facts.c.tree.in_(some)))
