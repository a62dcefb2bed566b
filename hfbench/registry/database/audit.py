"""What was done to the hub, by whom: kept for people. Routes ask only whether anything was withdrawn."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.schema import audit

XORBS_REMOVED = "xorbs.removed"
WITHDRAWS = (XORBS_REMOVED, "repo.delete", "repo.settings")
"""What may take from a repository xorbs that clients remember to have sent, or were told of."""


async def note(
    connection: AsyncConnection, account: str, action: str, subject: str, detail: dict[str, Any] | None = None
) -> None:
    """Write one line, within the transaction that does it."""
    row = {"at": time.time(), "account": account, "action": action, "subject": subject, "detail": detail}
    await connection.execute(insert(audit).values(row))


async def last_withdrawal(connection: AsyncConnection) -> int:
    """A number that grows whenever xorbs may have been withdrawn from somebody."""
    query = select(func.coalesce(func.max(audit.c.id), 0)).where(audit.c.action.in_(WITHDRAWS))
    return int((await connection.execute(query)).scalar_one())
