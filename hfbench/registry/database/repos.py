"""Repositories: found, made, listed, changed and removed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.rows import add_or_renew
from hfbench.registry.database.schema import former_names, gate_requests, namespaces, repo_tags, repos


@dataclass(frozen=True, slots=True)
class Repo:
    """One repository as the database knows it."""

    id: int
    kind: str
    namespace_id: int
    namespace: str
    name: str
    private: bool
    gated: str
    strict: bool
    disabled: bool
    created: float
    modified: float
    downloads: int
    pipeline_tag: str
    library_name: str
    parameters: int
    facts_tree: str

    @property
    def full_name(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


_COLUMNS = [namespaces.c.name.label("namespace"), *(repos.c[name] for name in (
    "id", "kind", "namespace_id", "name", "private", "gated", "strict", "disabled", "created", "modified", "downloads",
    "pipeline_tag", "library_name", "parameters", "facts_tree"
))]  # fmt: skip
_JOINED = repos.join(namespaces, namespaces.c.id == repos.c.namespace_id)


def _repo(row: RowMapping) -> Repo:
    empty: dict[str, Any] = {"pipeline_tag": "", "library_name": "", "parameters": 0, "facts_tree": ""}
    known: dict[str, Any] = {name: empty.get(name) if value is None else value for name, value in row.items()}
    return Repo(**known)


async def find_repo(connection: AsyncConnection, kind: str, namespace: str, name: str) -> Repo | None:
    """The repository of that name, in any case of its letters."""
    query = (
        select(*_COLUMNS)
        .select_from(_JOINED)
        .where(repos.c.kind == kind, namespaces.c.folded == namespace.casefold(), repos.c.folded == name.casefold())
    )
    row = (await connection.execute(query)).mappings().first()
    return _repo(row) if row else None


async def find_moved(connection: AsyncConnection, kind: str, namespace: str, name: str) -> Repo | None:
    """The repository that had this name before it was moved; one that has the name now is found by it first."""
    query = select(former_names.c.repo_id).where(
        former_names.c.kind == kind,
        former_names.c.namespace == namespace.casefold(),
        former_names.c.name == name.casefold(),
    )
    id = (await connection.execute(query)).scalar()
    return None if id is None else await repo_by_id(connection, id)


async def keep_name(connection: AsyncConnection, repo: Repo) -> None:
    """Let a repository be found by the name it has now when it will have another."""
    row = {"kind": repo.kind, "namespace": repo.namespace.casefold(), "name": repo.name.casefold(), "repo_id": repo.id}
    await add_or_renew(connection, former_names, [row], ["repo_id"])


async def repo_by_id(connection: AsyncConnection, id: int) -> Repo | None:
    """The repository of that id."""
    row = (await connection.execute(select(*_COLUMNS).select_from(_JOINED).where(repos.c.id == id))).mappings().first()
    return _repo(row) if row else None


async def lock_repo(connection: AsyncConnection, id: int) -> bool:
    """Let no other transaction change the repository until this one ends; False when it is gone."""
    query = select(repos.c.id).where(repos.c.id == id).with_for_update()
    return (await connection.execute(query)).first() is not None


async def add_repo(connection: AsyncConnection, kind: str, namespace_id: int, name: str, *, private: bool) -> int:
    """Make an empty repository; its id. IntegrityError when the name is taken."""
    now = time.time()
    row = {
        "kind": kind,
        "namespace_id": namespace_id,
        "name": name,
        "folded": name.casefold(),
        "private": private,
        "gated": "",
        "strict": False,
        "disabled": False,
        "created": now,
        "modified": now,
        "downloads": 0,
    }
    return int((await connection.execute(insert(repos).values(row).returning(repos.c.id))).scalar_one())


async def change_repo(connection: AsyncConnection, id: int, **values: Any) -> None:
    """Set columns of a repository."""
    await connection.execute(update(repos).where(repos.c.id == id).values(values))


async def remove_repo(connection: AsyncConnection, id: int) -> None:
    """Remove a repository with its refs and commits; content stays until nothing refers to it and it is swept."""
    await connection.execute(delete(repos).where(repos.c.id == id))


async def list_repos(
    connection: AsyncConnection, clauses: Sequence[ColumnElement[bool]], order: Sequence[Any], limit: int
) -> list[Repo]:
    """Repositories for which all clauses hold."""
    query = select(*_COLUMNS).select_from(_JOINED).where(*clauses).order_by(*order).limit(limit)
    return [_repo(row) for row in (await connection.execute(query)).mappings()]


async def tags_of(connection: AsyncConnection, ids: Iterable[int]) -> dict[int, list[str]]:
    """The tags of several repositories."""
    query = select(repo_tags.c.repo_id, repo_tags.c.tag).where(repo_tags.c.repo_id.in_(list(ids)))
    found: dict[int, list[str]] = {}
    for repo, tag in await connection.execute(query.order_by(repo_tags.c.tag)):
        found.setdefault(repo, []).append(tag)
    return found


async def set_tags(connection: AsyncConnection, id: int, tags: Iterable[str]) -> None:
    """Replace the tags of a repository."""
    await connection.execute(delete(repo_tags).where(repo_tags.c.repo_id == id))
    if rows := [{"repo_id": id, "tag": tag} for tag in sorted(set(tags))]:
        await connection.execute(insert(repo_tags), rows)


async def count_download(connection: AsyncConnection, id: int, count: int) -> None:
    """So many downloads more."""
    await connection.execute(update(repos).where(repos.c.id == id).values(downloads=repos.c.downloads + count))


async def gate_state(connection: AsyncConnection, repo: int, account: int) -> str:
    """What became of an account's wish to open a gated repository; empty when there was none."""
    query = select(gate_requests.c.state).where(gate_requests.c.repo_id == repo, gate_requests.c.account_id == account)
    return (await connection.execute(query)).scalar() or ""


async def set_gate_state(connection: AsyncConnection, repo: int, account: int, state: str) -> None:
    """Note what became of it; an empty state forgets it."""
    which = (gate_requests.c.repo_id == repo, gate_requests.c.account_id == account)
    await connection.execute(delete(gate_requests).where(*which))
    if state:
        row = {"repo_id": repo, "account_id": account, "state": state, "at": time.time()}
        await connection.execute(insert(gate_requests).values(row))


async def count_repos(connection: AsyncConnection) -> int:
    """How many repositories there are."""
    return int((await connection.execute(select(func.count()).select_from(repos))).scalar_one())
