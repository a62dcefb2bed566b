"""What was done to a hub, as the audit has it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.schema import audit
from hfbench.registry.upkeep.facts import Deed


async def last_deeds(connection: AsyncConnection, most: int, account: str = "") -> list[Deed]:
    """The last entries, of an account or of all, the newest last."""
    columns = (audit.c.at, audit.c.account, audit.c.action, audit.c.subject, audit.c.detail)
    query = select(*columns).order_by(audit.c.id.desc()).limit(most)
    found = await connection.execute(query.where(audit.c.account == account) if account else query)
    return [Deed(*row) for row in found][::-1]
