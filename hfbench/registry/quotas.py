"""Room in a namespace: asked for before bytes move, promised until they arrive, and asked again once they have."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.repos import Repo
from hfbench.registry.database.room import file_bytes, lock_namespace, promise, promised_bytes, quota_of, used_bytes
from hfbench.registry.errors import TooLarge
from hfbench.registry.settings import Settings
from hfbench.units import show_bytes


async def require_room(connection: AsyncConnection, settings: Settings, repo: Repo, wanted: int) -> None:
    """TooLarge when so many bytes more would exceed the quota of the repository's namespace."""
    limit = await limit_of(connection, settings, repo)
    if limit and wanted:
        used = await used_bytes(connection, repo.namespace_id)
        _require(repo, limit, used, await promised_bytes(connection, repo.namespace_id), wanted)


async def require_room_for_files(connection: AsyncConnection, settings: Settings, repo: Repo, wanted: int) -> None:
    """TooLarge when files of so many bytes would not fit beside those that are held: the xorbs they are made of, which
    are here already, do not count beside them."""
    limit = await limit_of(connection, settings, repo)
    if limit and wanted:
        _require(repo, limit, await file_bytes(connection, repo.namespace_id), 0, wanted)


async def promise_room(connection: AsyncConnection, settings: Settings, repo: Repo, wanted: Mapping[str, int]) -> None:
    """Keep room for contents that are about to be sent, by hash, within a writing transaction; TooLarge when there is
    none. Whoever asks at the same time is told what is left."""
    limit = await limit_of(connection, settings, repo)
    if not limit or not wanted:
        return
    await lock_namespace(connection, repo.namespace_id)
    used = await used_bytes(connection, repo.namespace_id)
    promised = await promised_bytes(connection, repo.namespace_id, but=wanted.keys())
    _require(repo, limit, used, promised, sum(wanted.values()))
    await promise(connection, repo.id, wanted, time.time() + settings.link_seconds)


async def require_kept_within(connection: AsyncConnection, settings: Settings, repo: Repo) -> None:
    """TooLarge when what this transaction lets the repository hold does not fit beside what others were promised."""
    limit = await limit_of(connection, settings, repo)
    if not limit:
        return
    await lock_namespace(connection, repo.namespace_id)
    used = await used_bytes(connection, repo.namespace_id)
    promised = await promised_bytes(connection, repo.namespace_id)
    if used + promised > limit:
        others = _others(promised)
        raise TooLarge(
            f"{repo.namespace} would hold {show_bytes(used)} of the {show_bytes(limit)} it may{others}. {_REMEDY}"
        )


async def limit_of(connection: AsyncConnection, settings: Settings, repo: Repo) -> int:
    """Bytes that the repository's namespace may hold, 0 for any number."""
    own = await quota_of(connection, repo.namespace_id)
    return settings.default_quota if own is None else own


_REMEDY = "Delete repositories, or ask the administrator of this hub."


def _require(repo: Repo, limit: int, used: int, promised: int, wanted: int) -> None:
    if used + promised + wanted > limit:
        raise TooLarge(
            f"{repo.namespace} holds {show_bytes(used)} of the {show_bytes(limit)} it may{_others(promised)}:"
            f" {show_bytes(wanted)} more do not fit. {_REMEDY}"
        )


def _others(promised: int) -> str:
    return f", and uploads under way were promised {show_bytes(promised)}" if promised else ""
