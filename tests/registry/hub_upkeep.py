"""A hub within this process with a client of it, and time that passes for all that lies there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from hub_inside import REPO, hub_inside
from hub_process import HubProcess
from sqlalchemy import true, update

from hfbench.registry.database.live import unheld_blobs, unheld_xorbs
from hfbench.registry.database.schema import blobs, commits, repo_blobs, repo_xorbs, xorbs
from hfbench.registry.hub import Hub

AGE = 10 * 24 * 3600.0
Inside = tuple[Hub, httpx2.AsyncClient]


@asynccontextmanager
async def opened(hub: HubProcess) -> AsyncIterator[Inside]:
    """That hub with a client of its writer, and the repository of the deeds."""
    async with hub_inside(hub.settings, hub.writer) as found:
        namespace, _, name = REPO.partition("/")
        await found[1].post("/api/repos/create", json={"name": name, "organization": namespace})
        yield found


async def let_age(hub: Hub, *, commits_too: bool = False, held_too: bool = True) -> None:
    """Let everything that lies there be ten days older, or only what no repository holds."""
    then = time.time() - AGE
    async with hub.database.writing() as connection:
        unheld = (unheld_blobs(time.time() + AGE), unheld_xorbs(time.time() + AGE))
        for table, clause in zip((blobs, xorbs), unheld, strict=True):
            which = true() if held_too else clause
            await connection.execute(update(table).where(which).values(created=table.c.created - AGE))
        for table in (repo_blobs, repo_xorbs) if held_too else ():
            await connection.execute(update(table).values(created=table.c.created - AGE))
        if commits_too:
            await connection.execute(update(commits).values(at=commits.c.at - AGE))

    def touch() -> None:
        for kind in ("blobs", "xorbs", "cache"):
            for path in (hub.layout.root / kind).glob("*/*"):
                os.utime(path, (then, then))

    if held_too:
        await asyncio.to_thread(touch)
