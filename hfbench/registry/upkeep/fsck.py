"""Checks a whole hub: every revision down to the bytes of its files. Repairs what can be, and lets the rest be sent."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

from sqlalchemy import delete, select, update

from hfbench.registry.database.audit import XORBS_REMOVED, note
from hfbench.registry.database.content import FILE, LOST, Blob, add_blob, hold_blobs
from hfbench.registry.database.live import remove_files
from hfbench.registry.database.schema import blobs, inline_blobs, xet_file_xorbs, xet_files, xorb_chunks
from hfbench.registry.hub import Hub
from hfbench.registry.storage.drafts import sync_folder
from hfbench.registry.upkeep.collecting import strays
from hfbench.registry.upkeep.content_check import Stored, check_content, file_trouble
from hfbench.registry.upkeep.facts import Checked, Damage, Tell
from hfbench.registry.upkeep.history_check import Told, check_history

FRESH = 3600.0
"""Seconds during which a file without a row may be on its way."""
BY = "administration"


async def check(hub: Hub, *, quick: bool, repair: bool, tell: Tell) -> Checked:
    """What is damaged and where; with `repair`, what was done about it."""
    stored = await check_content(hub, quick=quick, tell=tell)
    told = await check_history(hub, stored, tell)
    damages = _damages(stored, told)
    if repair:
        damages = await _Repair(hub, stored, told).run(damages)
    left = [] if quick else await strays(hub, time.time() - FRESH)
    return Checked(
        repos=told.repos,
        commits=told.commits,
        blobs=len(stored.sizes),
        xorbs=stored.xorb_count,
        bytes_read=stored.bytes_read,
        damages=tuple(damages),
        orphans=len(left),
        orphan_bytes=sum(size for _, size in left),
    )


def _damages(stored: Stored, told: Told) -> list[Damage]:
    """Everything that is wrong; content that no revision names is wrong without harm."""
    wrong = stored.blobs | told.wrong
    found = [
        Damage("blob", name, why, tuple(told.places.get(name, ())), told.more.get(name, 0), lost=name in told.places)
        for name, why in sorted(wrong.items(), key=lambda each: (each[0] not in told.places, each[0]))
    ]
    found += [Damage("xorb", name, why, lost=False) for name, why in sorted(stored.xorbs.items())]
    found += [Damage("cache", name, why, lost=False) for name, why in sorted(stored.cached.items())]
    found += [
        Damage("hold", f"repository {repo}", f"does not hold {len(names)} of the files it names", lost=False)
        for repo, names in sorted(told.unheld.items())
    ]
    return [*told.damages, *found]


class _Repair:
    """What is done about each kind of damage. Damaged files are set aside in `damaged`, never removed."""

    def __init__(self, hub: Hub, stored: Stored, told: Told) -> None:
        self.hub, self.stored, self.told = hub, stored, told
        self.aside = hub.layout.root / "damaged"

    async def run(self, damages: list[Damage]) -> list[Damage]:
        """The damages with what was done. The cache first: nothing is restored from a damaged file in it."""
        order = {"cache": 0, "blob": 1, "xorb": 2}
        done: list[Damage] = []
        for damage in sorted(damages, key=lambda each: order.get(each.what, 3)):
            mend = getattr(self, f"_{damage.what}", None)
            done.append(await mend(damage) if mend else damage)
        async with self.hub.database.writing() as connection:
            await note(connection, BY, "fsck.repair", self.hub.settings.folder, {"damages": len(damages)})
        return sorted(done, key=lambda each: (not each.lost, each.what, each.name))

    async def _cache(self, damage: Damage) -> Damage:
        self.hub.layout.cached(damage.name).unlink(missing_ok=True)
        return replace(damage, mended="removed: it is rebuilt when it is asked for")

    async def _hold(self, damage: Damage) -> Damage:
        repo = int(damage.name.rpartition(" ")[2])
        async with self.hub.database.writing() as connection:
            await hold_blobs(connection, repo, self.told.unheld[repo])
        return replace(damage, mended="it holds them again")

    async def _xorb(self, damage: Damage) -> Damage:
        """Nobody is told of its chunks any more, so that clients send them again."""
        self._set_aside(self.hub.layout.xorb(damage.name))
        async with self.hub.database.sweeping() as connection:
            await note(connection, BY, XORBS_REMOVED, damage.name)
            files = select(xet_file_xorbs.c.file).where(xet_file_xorbs.c.xorb == damage.name)
            await connection.execute(delete(xorb_chunks).where(xorb_chunks.c.xorb == damage.name))
            await remove_files(connection, xet_files.c.id.in_([id for (id,) in await connection.execute(files)]))
        return replace(damage, mended="set aside: its chunks are asked for again")

    async def _blob(self, damage: Damage) -> Damage:
        """Restored from a whole copy where there is one; else lost, and clients that have the file may send it."""
        sha256, layout = damage.name, self.hub.layout
        if sha256 in self.told.wrong and sha256 in self.stored.sizes:
            return damage  # the revision is wrong, not the content
        size = await self._size(sha256)
        for path in (layout.blob(sha256), layout.cached(sha256)):
            if size is not None and not await asyncio.to_thread(file_trouble, path, sha256, size):
                return await self._restored(damage, path, size)
        self._set_aside(layout.blob(sha256))
        async with self.hub.database.sweeping() as connection:
            await connection.execute(update(blobs).where(blobs.c.sha256 == sha256).values(place=LOST))
            await connection.execute(delete(inline_blobs).where(inline_blobs.c.sha256 == sha256))
            await remove_files(connection, xet_files.c.sha256 == sha256)
        return replace(damage, mended="lost: whoever has the file may upload it again")

    async def _restored(self, damage: Damage, path: Path, size: int) -> Damage:
        kept = self.hub.layout.blob(damage.name)
        if path != kept:
            self._set_aside(kept)
            os.link(path, kept)
            with kept.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(kept.parent)
        async with self.hub.database.sweeping() as connection:
            await add_blob(connection, Blob(damage.name, size, FILE))
            await connection.execute(update(blobs).where(blobs.c.sha256 == damage.name).values(place=FILE))
        return replace(damage, mended="restored from a whole copy", lost=False)

    async def _size(self, sha256: str) -> int | None:
        """The size by the database; where it does not know the blob, by a file that lies there."""
        if (known := self.stored.sizes.get(sha256)) is not None:
            return known
        try:
            return self.hub.layout.blob(sha256).stat().st_size
        except FileNotFoundError:
            return None

    def _set_aside(self, path: Path) -> None:
        self.aside.mkdir(mode=0o700, exist_ok=True)
        try:
            os.rename(path, self.aside / path.name)
        except FileNotFoundError:
            return
        sync_folder(path.parent)
