"""Branches, tags and commits of a repository."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import delete, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.rows import pairs
from hfbench.registry.database.schema import commits, refs

Kind = Literal["branch", "tag"]
BRANCH: Final = "branch"
TAG: Final = "tag"
MAIN = "main"
_PREFIXES: dict[str, Kind] = {"refs/heads/": "branch", "refs/tags/": "tag"}


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; `tree` is the id of its root tree."""

    id: str
    parent: str
    tree: str
    title: str
    message: str
    author: str
    at: float
    payload: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag."""

    kind: Kind
    name: str
    commit: str


_COLUMNS = tuple(commits.c[name] for name in ("id", "parent", "tree", "title", "message", "author", "at", "payload"))


async def find_ref(connection: AsyncConnection, repo: int, kind: Kind, name: str) -> str | None:
    """The commit of a branch or tag."""
    query = select(refs.c.commit).where(refs.c.repo_id == repo, refs.c.kind == kind, refs.c.name == name)
    return (await connection.execute(query)).scalar()


async def find_commit(connection: AsyncConnection, repo: int, id: str) -> Commit | None:
    """The commit of that id."""
    query = select(*_COLUMNS).where(commits.c.repo_id == repo, commits.c.id == id)
    row = (await connection.execute(query)).first()
    return _commit(row) if row else None


async def find_revision(connection: AsyncConnection, repo: int, revision: str) -> Commit | None:
    """The commit a branch, a tag, or a commit's own id names; branches come first."""
    kinds: Iterable[Kind] = (BRANCH, TAG)
    name = revision
    for prefix, kind in _PREFIXES.items():
        if revision.startswith(prefix):
            kinds, name = (kind,), revision.removeprefix(prefix)
    for kind in kinds:
        if (id := await find_ref(connection, repo, kind, name)) is not None:
            return await find_commit(connection, repo, id)
    return await find_commit(connection, repo, revision)


async def list_refs(connection: AsyncConnection, repo: int) -> list[Ref]:
    """Branches and tags by name, `main` first."""
    query = select(refs.c.kind, refs.c.name, refs.c.commit).where(refs.c.repo_id == repo)
    found = [Ref(*row) for row in await connection.execute(query)]
    return sorted(found, key=lambda ref: (ref.name != MAIN, ref.name))


async def heads(connection: AsyncConnection, repos: Iterable[int]) -> dict[int, str]:
    """The commit of `main` of several repositories."""
    query = select(refs.c.repo_id, refs.c.commit).where(
        refs.c.repo_id.in_(list(repos)), refs.c.kind == BRANCH, refs.c.name == MAIN
    )
    return await pairs(connection, query)


async def add_ref(
    connection: AsyncConnection, repo: int, kind: Kind, name: str, commit: str, message: str = ""
) -> None:
    """Make a branch or tag; IntegrityError when it is there."""
    row = {"repo_id": repo, "kind": kind, "name": name, "commit": commit, "message": message or None}
    await connection.execute(insert(refs).values(row))


async def move_ref(connection: AsyncConnection, repo: int, name: str, commit: str) -> None:
    """Let a branch be at another commit."""
    which = (refs.c.repo_id == repo, refs.c.kind == BRANCH, refs.c.name == name)
    await connection.execute(update(refs).where(*which).values(commit=commit))


async def remove_ref(connection: AsyncConnection, repo: int, kind: Kind, name: str) -> bool:
    """Remove a branch or tag; False when there was none."""
    query = delete(refs).where(refs.c.repo_id == repo, refs.c.kind == kind, refs.c.name == name)
    return bool((await connection.execute(query.returning(refs.c.name))).first())


async def add_commit(connection: AsyncConnection, repo: int, commit: Commit) -> None:
    """Keep a commit."""
    row = {
        "repo_id": repo,
        "id": commit.id,
        "parent": commit.parent or None,
        "tree": commit.tree,
        "title": commit.title,
        "message": commit.message,
        "author": commit.author,
        "at": commit.at,
        "payload": commit.payload,
    }
    await connection.execute(insert(commits).values(row))


async def complete_commit(connection: AsyncConnection, repo: int, id: str, tree: str) -> None:
    """Let an imported commit have the files of it that came later."""
    which = (commits.c.repo_id == repo, commits.c.id == id)
    await connection.execute(update(commits).where(*which).values(tree=tree))


async def log(connection: AsyncConnection, repo: int, start: str, limit: int) -> list[Commit]:
    """The commit `start` and those before it, newest first."""
    chain = (
        select(commits.c.id, commits.c.parent, literal(1).label("depth"))
        .where(commits.c.repo_id == repo, commits.c.id == start)
        .cte("chain", recursive=True)
    )
    chain = chain.union_all(
        select(commits.c.id, commits.c.parent, chain.c.depth + 1)
        .join(chain, commits.c.id == chain.c.parent)
        .where(commits.c.repo_id == repo, chain.c.depth < limit)
    )
    query = (
        select(*_COLUMNS)
        .join(chain, chain.c.id == commits.c.id)
        .where(commits.c.repo_id == repo)
        .order_by(chain.c.depth)
    )
    return [_commit(row) for row in await connection.execute(query)]


async def recent_payload(connection: AsyncConnection, repo: int, payload: str, since: float) -> Commit | None:
    """The newest commit since a time that was asked for in just these words."""
    query = (
        select(*_COLUMNS)
        .where(commits.c.repo_id == repo, commits.c.payload == payload, commits.c.at >= since)
        .order_by(commits.c.at.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).first()
    return _commit(row) if row else None


def _commit(row: object) -> Commit:
    id, parent, *rest = tuple(row)  # type: ignore[var-annotated,arg-type]
    return Commit(id, parent or "", *rest)
