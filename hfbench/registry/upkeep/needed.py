"""What of a hub is still needed: everything that commits of its repositories name, found by walking their trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.live import CommitRow, all_held, commit_rows, old_holds, reachable, repo_ids, xorbs_of
from hfbench.registry.database.schema import commits
from hfbench.registry.hub import Hub
from hfbench.registry.revisions.entries import EMPTY
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.upkeep.facts import Tell


@dataclass(slots=True)
class Needed:
    """What commits name, and what repositories hold and no commit of theirs names."""

    trees: set[str] = field(default_factory=lambda: {EMPTY.id})
    blob_holds: list[tuple[int, str]] = field(default_factory=list)
    xorb_holds: list[tuple[int, str]] = field(default_factory=list)
    unheld: dict[int, set[str]] = field(default_factory=dict)
    """What a repository's commits name and it does not hold: an older database was restored, or was repaired."""
    commits: dict[int, set[str]] = field(default_factory=dict)
    """Commits by repository that no branch or tag reaches, where those are not to be kept."""


async def look(hub: Hub, before: float, *, unreachable: bool, tell: Tell) -> Needed:
    """Walk everything; holds and commits since `before` are left alone whatever names them.

    With `unreachable`, commits that no branch or tag reaches need nothing.
    """
    found, trees = Needed(), Trees()
    async with hub.database.reading() as connection:
        ids = await repo_ids(connection)
    for place, repo in enumerate(ids):
        tell("repositories", place, len(ids), "")
        async with hub.database.reading() as connection:
            rows = await commit_rows(connection, commits.c.repo_id == repo)
            if unreachable:
                reached = await reachable(connection, repo, rows)
                if gone := {row.id for row in rows if row.id not in reached and row.at < before}:
                    found.commits[repo] = gone
                    rows = [row for row in rows if row.id not in gone]
            seen, named = await _walk(connection, trees, rows)
            if lacking := named - await all_held(connection, repo):
                found.unheld[repo] = lacking
            held, sent = await old_holds(connection, repo, before)
            made_of = await xorbs_of(connection, named) if sent else set()
        found.trees |= seen
        found.blob_holds += ((repo, sha256) for sha256 in held - named)
        found.xorb_holds += ((repo, xorb) for xorb in sent - made_of)
    tell("repositories", len(ids), len(ids), "")
    return found


async def _walk(connection: AsyncConnection, trees: Trees, rows: Iterable[CommitRow]) -> tuple[set[str], set[str]]:
    seen: set[str] = set()
    named: set[str] = set()
    for row in rows:
        await walk_new(connection, trees, row.tree, seen, named)
    return seen, named


async def walk_new(connection: AsyncConnection, trees: Trees, root: str, seen: set[str], named: set[str]) -> None:
    """Add a tree and those below it to `seen`, and their files' contents to `named`; what was seen is passed over.

    A tree that the database lacks is passed over too: fsck tells of it.
    """
    waiting = [root]
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        try:
            tree = await trees.load(connection, id)
        except KeyError:
            continue
        for entry in tree.entries.values():
            if entry.is_folder:
                waiting.append(entry.target)
            else:
                named.add(entry.target)
