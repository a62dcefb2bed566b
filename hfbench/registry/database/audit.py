"""What was done to the hub, by whom: kept for people, never read by routes."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.schema import audit


async def note(
    connection: AsyncConnection, account: str, action: str, subject: str, detail: dict[str, Any] | None = None
) -> None:
    """Write one line, within the transaction that does it."""
    row = {"at": time.time(), "account": account, "action": action, "subject": subject, "detail": detail}
    await connection.execute(insert(audit).values(row))
