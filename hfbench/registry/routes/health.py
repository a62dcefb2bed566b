"""Whether the hub lives, and its counters."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

from sqlalchemy import Column, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response

import hfbench
from hfbench.registry.call import Call
from hfbench.registry.database.repos import count_repos
from hfbench.registry.database.schema import accounts, blobs, xorbs
from hfbench.registry.errors import DAMAGED, Forbidden, Refusal
from hfbench.registry.routing import router


@router.get("/health")
async def health(call: Call) -> Response:
    """200 while the database answers, and is whole as far as requests have seen."""
    if call.hub.damaged:
        raise Refusal(503, DAMAGED)
    async with call.hub.database.reading() as connection:
        await connection.execute(select(accounts.c.id).limit(1))
    return JSONResponse({"status": "ok", "version": hfbench.__version__})


@router.get("/metrics")
async def metrics(call: Call) -> Response:
    """Counters of all workers and sizes of the hub, for Prometheus; for administrators, since they tell of all."""
    async with call.hub.database.reading() as connection:
        caller = await call.somebody(connection)
        if not caller.is_admin:
            raise Forbidden("Metrics are for administrators of this hub.")
        sizes = {
            "repositories": ("Repositories", float(await count_repos(connection))),
            "blob_bytes": ("Bytes of all files, each counted once", await _sum(connection, blobs.c.size)),
            "xorb_bytes": ("Bytes of all xorbs on disk", await _sum(connection, xorbs.c.size)),
        }
    layout = call.hub.layout
    sizes["free_bytes"] = ("Bytes free on the disk of the hub", float(shutil.disk_usage(layout.root).free))
    counted = await asyncio.to_thread(call.hub.metrics.with_others, layout.counters)
    return PlainTextResponse(counted.text(sizes), media_type="text/plain; version=0.0.4")


async def _sum(connection: AsyncConnection, column: Column[Any]) -> float:
    query = select(func.coalesce(func.sum(column), 0))
    return float((await connection.execute(query)).scalar_one())
