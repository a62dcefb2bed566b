"""One running hub: everything its routes share, made when a worker starts and closed when it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from hfbench.registry.access.links import Signer
from hfbench.registry.database.content import forget_xorbs
from hfbench.registry.database.engine import Database
from hfbench.registry.database.people import note_use
from hfbench.registry.database.repos import count_download
from hfbench.registry.metrics import Metrics
from hfbench.registry.presence import read_key
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.settings import Settings
from hfbench.registry.storage.cache import Cache
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.reading import Reader
from hfbench.registry.storage.rebuilding import Rebuilder
from hfbench.registry.storage.sweeping import sweep_abandoned
from hfbench.registry.storage.trust import Trust

WRITTEN_EVERY = 5.0
"""Seconds between two writings of what was counted."""
DROPPED_EVERY = 600.0
SWEPT_EVERY = 3600.0
JUDGING_AT_ONCE = 2
"""Models that are judged at the same time, each by a process of its own."""
VERIFYING_AT_ONCE = 4
"""Xorbs that are unpacked at the same time: each takes some memory and a core."""
log = logging.getLogger("hfbench.registry")


@dataclass
class Hub:
    """What routes share."""

    settings: Settings
    database: Database
    layout: Layout
    signer: Signer
    trees: Trees
    cache: Cache
    rebuilder: Rebuilder
    reader: Reader
    trust: Trust
    metrics: Metrics = field(default_factory=Metrics)
    downloads: Counter[int] = field(default_factory=Counter)
    damaged: bool = False
    """Whether a request met a database whose file is damaged."""
    next_drop: float = 0.0
    next_sweep: float = 0.0
    used_tokens: set[int] = field(default_factory=set)
    judging: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(JUDGING_AT_ONCE))
    verifying: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(VERIFYING_AT_ONCE))

    @property
    def keeps_xorbs(self) -> bool:
        """Whether xorbs are what is kept, rather than whole files."""
        return self.settings.storage == "xorbs"

    async def write_use(self) -> None:
        """Add what was counted, and note which tokens were used, in the database."""
        counted, self.downloads = self.downloads, Counter()
        used, self.used_tokens = self.used_tokens, set()
        if not counted and not used:
            return
        async with self.database.writing() as connection:
            for repo, count in sorted(counted.items()):
                await count_download(connection, repo, count)
            for token in sorted(used):
                await note_use(connection, token)

    async def drop_xorbs(self) -> None:
        """Where whole files are kept, drop the xorbs they were made of, once no upload can still name them."""
        if self.keeps_xorbs or time.monotonic() < self.next_drop:
            return
        self.next_drop = time.monotonic() + DROPPED_EVERY
        async with self.database.writing() as connection:
            gone = await forget_xorbs(connection, time.time() - 2 * self.settings.link_seconds)
        for name in gone:
            self.layout.xorb(name).unlink(missing_ok=True)

    async def sweep(self) -> None:
        """Remove what a worker that was killed left half."""
        if time.monotonic() >= self.next_sweep:
            self.next_sweep = time.monotonic() + SWEPT_EVERY
            await asyncio.to_thread(sweep_abandoned, self.layout)

    async def tend(self) -> None:
        """What is done now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(WRITTEN_EVERY)
            try:
                await asyncio.to_thread(self.metrics.save, self.layout.counters)
                await self.write_use()
                await self.drop_xorbs()
                await self.sweep()
            except Exception:
                log.exception("tending the hub failed")

    async def close(self) -> None:
        """End what runs, write what waits, and let go of the database."""
        self.rebuilder.close()
        with suppress(Exception):
            await self.write_use()
        await self.database.close()


def open_hub(settings: Settings) -> Hub:
    """The hub of these settings; its folder and schema are there."""
    layout = settings.layout
    cache = Cache(layout, settings.cache_bytes)
    trust = Trust(verify=settings.verify)
    rebuilder = Rebuilder(layout, cache, trust)
    return Hub(
        settings=settings,
        database=Database(settings.database_url),
        layout=layout,
        signer=Signer(read_key(layout)),
        trees=Trees(),
        cache=cache,
        rebuilder=rebuilder,
        reader=Reader(layout, cache, rebuilder, trust),
        trust=trust,
    )
