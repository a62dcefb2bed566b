"""Removes what no repository needs any more, in small transactions, while the hub may be served.

What is needed is found by reading. Each removal asks again, in a transaction during which nobody else writes, whether
somebody took the thing up meanwhile; files go only after the rows that named them are gone for good.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Column, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.audit import XORBS_REMOVED, note
from hfbench.registry.database.content import FILE, hold_blobs
from hfbench.registry.database.live import (
    commit_rows,
    drop_holds,
    reachable,
    remove_blobs,
    remove_commits,
    remove_trees,
    remove_xorbs,
    unheld_blobs,
    unheld_xorbs,
)
from hfbench.registry.database.repos import lock_repo
from hfbench.registry.database.rows import pairs, portions
from hfbench.registry.database.schema import (
    blobs,
    commits,
    repo_blobs,
    repo_xorbs,
    trees,
    xet_file_xorbs,
    xet_files,
    xorbs,
)
from hfbench.registry.hub import Hub
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.storage.layout import FANS
from hfbench.registry.storage.sweeping import PARTS_STAY
from hfbench.registry.upkeep.facts import Swept, Tell
from hfbench.registry.upkeep.needed import Needed, look, walk_new

SKEW = 3600.0
"""Seconds by which clocks of machines that write to one hub may differ."""
PORTION = 200
"""Things removed in one transaction: others write again after some milliseconds."""
BY = "administration"


@dataclass(slots=True)
class Plan:
    """What may go: commits and trees, blobs and xorbs with their bytes on disk, and files no row names."""

    needed: Needed
    trees: set[str] = field(default_factory=set)
    blobs: dict[str, int] = field(default_factory=dict)
    xorbs: dict[str, int] = field(default_factory=dict)
    strays: dict[Path, int] = field(default_factory=dict)


async def collect(hub: Hub, grace: float, *, unreachable: bool, dry_run: bool, tell: Tell) -> Swept:
    """Remove what is not needed since `grace` seconds, or only say what would go."""
    begun = time.time()
    before = begun - grace
    plan = await _plan(hub, before, unreachable=unreachable, tell=tell)
    if not dry_run:
        plan = await _remove(hub, plan, before, begun, tell)
    return Swept(
        commits=sum(map(len, plan.needed.commits.values())),
        trees=len(plan.trees),
        blobs=len(plan.blobs),
        xorbs=len(plan.xorbs),
        files=len(plan.strays),
        bytes=sum(plan.blobs.values()) + sum(plan.xorbs.values()) + sum(plan.strays.values()),
        dry_run=dry_run,
    )


async def _plan(hub: Hub, before: float, *, unreachable: bool, tell: Tell) -> Plan:
    plan = Plan(await look(hub, before, unreachable=unreachable, tell=tell))
    async with hub.database.reading() as connection:
        plan.trees = set((await connection.execute(select(trees.c.id))).scalars()) - plan.needed.trees
        plan.blobs = await _blobs_to_go(connection, plan.needed, before)
        plan.xorbs = await _xorbs_to_go(connection, plan, before)
    plan.strays = dict(await strays(hub, before))
    return plan


async def _blobs_to_go(connection: AsyncConnection, needed: Needed, before: float) -> dict[str, int]:
    """Blobs nobody holds, now or once the holds that are not needed are gone, with their bytes on disk."""
    dropped = Counter(sha256 for _, sha256 in needed.blob_holds)
    size = (blobs.c.sha256, blobs.c.size)
    found = await pairs(connection, select(*size).where(unheld_blobs(before)))
    for some in portions(dropped):
        count = select(repo_blobs.c.sha256, func.count()).where(repo_blobs.c.sha256.in_(some))
        held = await pairs(connection, count.group_by(repo_blobs.c.sha256))
        last = [sha256 for sha256 in some if held.get(sha256, 0) <= dropped[sha256]]
        found |= await pairs(connection, select(*size).where(blobs.c.sha256.in_(last), blobs.c.created < before))
    on_disk: dict[str, int] = {}
    for some in portions(found):
        query = select(blobs.c.sha256).where(blobs.c.sha256.in_(some), blobs.c.place == FILE)
        on_disk |= {sha256: found[sha256] for (sha256,) in await connection.execute(query)}
    named = set().union(*needed.unheld.values())
    return {sha256: on_disk.get(sha256, 0) for sha256 in found if sha256 not in named}


async def _xorbs_to_go(connection: AsyncConnection, plan: Plan, before: float) -> dict[str, int]:
    """Xorbs that only files which go are made of, and that nobody holds, with their bytes."""
    dropped = dict.fromkeys((await connection.execute(select(xorbs.c.id).where(unheld_xorbs(before)))).scalars(), 0)
    dropped |= Counter(xorb for _, xorb in plan.needed.xorb_holds)
    found: dict[str, int] = {}
    going = plan.blobs.keys()
    for some in portions(dropped):
        count = select(repo_xorbs.c.xorb, func.count()).where(repo_xorbs.c.xorb.in_(some)).group_by(repo_xorbs.c.xorb)
        held = await pairs(connection, count)
        users = select(xet_file_xorbs.c.xorb, xet_files.c.sha256).join(
            xet_files, xet_files.c.id == xet_file_xorbs.c.file
        )
        needed = {
            xorb
            for xorb, sha256 in await connection.execute(users.where(xet_file_xorbs.c.xorb.in_(some)))
            if sha256 not in going
        }
        last = [xorb for xorb in some if xorb not in needed and held.get(xorb, 0) <= dropped[xorb]]
        query = select(xorbs.c.id, xorbs.c.size).where(xorbs.c.id.in_(last), xorbs.c.created < before)
        found |= await pairs(connection, query)
    return found


async def _remove(hub: Hub, plan: Plan, before: float, begun: float, tell: Tell) -> Plan:
    """Remove what is planned; what really went."""
    database, done = hub.database, Plan(Needed())
    for repo, names in plan.needed.unheld.items():
        async with database.writing() as connection:
            if await lock_repo(connection, repo):
                await hold_blobs(connection, repo, names)
    for repo, ids in plan.needed.commits.items():
        async with database.sweeping() as connection:
            rows = await commit_rows(connection, commits.c.repo_id == repo)
            gone = ids - await reachable(connection, repo, rows)  # a branch may have been made at one
            await remove_commits(connection, repo, gone)
        done.needed.commits[repo] = gone
    for holds in portions(plan.needed.blob_holds, PORTION):
        async with database.sweeping() as connection:
            await drop_holds(connection, holds, (), before)
    for holds in portions(plan.needed.xorb_holds, PORTION):
        async with database.sweeping() as connection:
            await drop_holds(connection, (), holds, before)
            await note(connection, BY, XORBS_REMOVED, hub.settings.folder)
    for place, some in enumerate(portions(plan.blobs, PORTION)):
        tell("blobs", place * PORTION, len(plan.blobs), "")
        async with database.sweeping() as connection:
            gone_blobs = await remove_blobs(connection, some, before)
        await _unlink_blobs(hub, gone_blobs)
        done.blobs |= {sha256: plan.blobs[sha256] for sha256 in gone_blobs}
    for place, some in enumerate(portions(plan.xorbs, PORTION)):
        tell("xorbs", place * PORTION, len(plan.xorbs), "")
        async with database.sweeping() as connection:
            gone_xorbs = await remove_xorbs(connection, some, before)
            await note(connection, BY, XORBS_REMOVED, hub.settings.folder, {"xorbs": len(gone_xorbs)})
        await _unlink_xorbs(hub, gone_xorbs)
        done.xorbs |= {xorb: plan.xorbs[xorb] for xorb in gone_xorbs}
    done.trees = await _remove_trees(hub, plan.trees, begun)
    done.strays = await _remove_strays(hub, plan.strays, before)
    return done


async def _remove_trees(hub: Hub, dead: Collection[str], begun: float) -> set[str]:
    """Remove trees, except those that a commit made since we looked has again."""
    dead = set(dead)
    if not dead:
        return dead
    async with hub.database.sweeping() as connection:
        taken: set[str] = set()
        for row in await commit_rows(connection, commits.c.at >= begun - SKEW):
            await walk_new(connection, Trees(), row.tree, taken, set())
        dead -= taken
        await remove_trees(connection, dead)
        await note(connection, BY, "gc", hub.settings.folder, {"trees": len(dead)})
    return dead


async def _unlink_blobs(hub: Hub, hashes: Collection[str]) -> None:
    """Remove files of blobs, unless one came again after its row was removed."""
    async with hub.database.sweeping() as connection:
        for sha256 in set(hashes) - set(await _known_among(connection, blobs.c.sha256, hashes)):
            hub.layout.blob(sha256).unlink(missing_ok=True)
            hub.layout.cached(sha256).unlink(missing_ok=True)


async def _unlink_xorbs(hub: Hub, names: Collection[str]) -> None:
    async with hub.database.sweeping() as connection:
        for name in set(names) - set(await _known_among(connection, xorbs.c.id, names)):
            hub.layout.xorb(name).unlink(missing_ok=True)


async def strays(hub: Hub, before: float) -> list[tuple[Path, int]]:
    """Files since a time that no row names, with their bytes: a server died between the two, or a backup was older."""
    found: list[tuple[Path, int]] = []
    for kind, column in (("blobs", blobs.c.sha256), ("xorbs", xorbs.c.id), ("cache", blobs.c.sha256)):
        for some in _listed(hub.layout.root / kind, before):
            async with hub.database.reading() as connection:
                known = set(await _known_among(connection, column, list(some)))
            found += ((path, size) for name, (path, size) in some.items() if name not in known)
    for path in hub.layout.uploads.iterdir():
        with suppress(FileNotFoundError):
            told = path.stat()
            if told.st_mtime < min(before, time.time() - PARTS_STAY):
                found.append((path, told.st_size))
    return found


async def _remove_strays(hub: Hub, planned: dict[Path, int], before: float) -> dict[Path, int]:
    gone: dict[Path, int] = {}
    for some in portions(planned, PORTION):
        async with hub.database.sweeping() as connection:
            names = [path.name for path in some]
            known = {*await _known_among(connection, blobs.c.sha256, names)}
            known |= {*await _known_among(connection, xorbs.c.id, names)}
            for path in some:
                with suppress(FileNotFoundError):
                    if path.name not in known and path.stat().st_mtime < before:
                        path.unlink()
                        gone[path] = planned[path]
    return gone


def _listed(folder: Path, before: float) -> Iterator[dict[str, tuple[Path, int]]]:
    for fan in FANS:
        found: dict[str, tuple[Path, int]] = {}
        with suppress(FileNotFoundError), os.scandir(folder / fan) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    told = entry.stat()
                    if told.st_mtime < before:
                        found[entry.name] = (Path(entry.path), told.st_size)
        if found:
            yield found


async def _known_among(connection: AsyncConnection, column: Column[str], names: Collection[str]) -> list[str]:
    return [n for some in portions(names) for n in (await connection.execute(_known(column, some))).scalars()]


def _known(column: Column[str], names: Collection[str]) -> Select[str]:
    return select(column).where(column.in_(names))
