"""Room in a namespace: asked for before bytes move."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.content import quota_of, used_bytes
from hfbench.registry.database.repos import Repo
from hfbench.registry.errors import TooLarge
from hfbench.registry.settings import Settings
from hfbench.units import show_bytes


async def require_room(connection: AsyncConnection, settings: Settings, repo: Repo, wanted: int) -> None:
    """TooLarge when so many bytes more would exceed the quota of the repository's namespace."""
    own = await quota_of(connection, repo.namespace_id)
    limit = settings.default_quota if own is None else own
    if not limit or not wanted:
        return
    used = await used_bytes(connection, repo.namespace_id)
    if used + wanted > limit:
        raise TooLarge(
            f"{repo.namespace} holds {show_bytes(used)} of the {show_bytes(limit)} it may: {show_bytes(wanted)} more"
            " do not fit. Delete repositories, or ask the administrator of this hub."
        )
