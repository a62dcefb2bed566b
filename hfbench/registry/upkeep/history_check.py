"""Walks every revision of every repository: what is missing or damaged, and which paths it is at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.history import list_refs
from hfbench.registry.database.live import CommitRow, commit_rows
from hfbench.registry.database.repos import Repo, list_repos
from hfbench.registry.database.schema import commits, repo_blobs, repos
from hfbench.registry.hub import Hub
from hfbench.registry.revisions.entries import Entry, Tree, tree_of
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.upkeep.content_check import Stored
from hfbench.registry.upkeep.facts import Damage, Place, Tell

NAMED = 20
"""Places that are named for one damaged blob."""


@dataclass(slots=True)
class Told:
    """What walking found: places by blob, damages of trees and refs, and holds that are missing."""

    repos: int = 0
    commits: int = 0
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    more: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    wrong: dict[str, str] = field(default_factory=dict)
    """Blobs that trees name and the database does not have, or with another size."""
    damages: list[Damage] = field(default_factory=list)
    unheld: dict[int, set[str]] = field(default_factory=dict)


async def check_history(hub: Hub, stored: Stored, tell: Tell) -> Told:
    """Walk all commits, each tree once a repository; every wrong file is named with a commit that has it."""
    told = Told()
    last = 0
    while True:
        async with hub.database.reading() as connection:
            some = await list_repos(connection, [repos.c.id > last], [repos.c.id], 100)
        if not some:
            return told
        for repo in some:
            tell("repositories", told.repos, None, "")
            await _Walk(hub, stored, told, repo).run()
            told.repos += 1
        last = some[-1].id


class _Walk:
    """One repository."""

    def __init__(self, hub: Hub, stored: Stored, told: Told, repo: Repo) -> None:
        self.hub, self.stored, self.told, self.repo = hub, stored, told, repo
        self.name = repo.full_name if repo.kind == "model" else f"{repo.kind}s/{repo.full_name}"
        self.refs: dict[str, tuple[str, ...]] = {}
        self.seen: set[tuple[str, str]] = set()
        self.at: set[tuple[str, str]] = set()
        self.trees = Trees()

    async def run(self) -> None:
        """Refs first, then commits from the newest: the newest commit with a damaged file is the one that is named."""
        async with self.hub.database.reading() as connection:
            found = await list_refs(connection, self.repo.id)
            rows = await commit_rows(connection, commits.c.repo_id == self.repo.id)
            query = select(repo_blobs.c.sha256).where(repo_blobs.c.repo_id == self.repo.id)
            held = set((await connection.execute(query)).scalars())
            ids = {row.id for row in rows}
            for ref in found:
                self.refs[ref.commit] = (*self.refs.get(ref.commit, ()), ref.name)
                if ref.commit not in ids:
                    wrong = f"it is at the commit {ref.commit}, which is gone"
                    self.told.damages.append(Damage("ref", f"{self.name}@{ref.name}", wrong))
            for row in sorted(rows, key=lambda row: row.id not in self.refs):
                self.told.commits += 1
                await self._walk(connection, row, row.tree, "", held)

    async def _walk(self, connection: AsyncConnection, commit: CommitRow, id: str, below: str, held: set[str]) -> None:
        if (id, below) in self.seen:
            return
        self.seen.add((id, below))
        tree = await self._load(connection, commit, id, below)
        for path, entry in _files(tree, below):
            if entry.is_folder:
                await self._walk(connection, commit, entry.target, path, held)
                continue
            if self._wrong(entry):
                self._place(commit, path, entry.target)
            if entry.target not in held and entry.target in self.stored.sizes:
                self.told.unheld.setdefault(self.repo.id, set()).add(entry.target)

    async def _load(self, connection: AsyncConnection, commit: CommitRow, id: str, below: str) -> Tree | None:
        wrong = "the folder's list of files is gone from the database"
        try:
            tree = await self.trees.load(connection, id)
            if tree_of(tree.entries.values()).id == id:
                return tree
            wrong = "the folder's list of files is not what its name says"
        except KeyError:
            pass
        except Exception as error:  # bytes of the database that are anything at all
            wrong = f"the folder's list of files cannot be read: {error}"
        place = Place(self.name, below or "/", commit.id, self.refs.get(commit.id, ()))
        self.told.damages.append(Damage("tree", id, wrong, (place,)))
        return None

    def _wrong(self, entry: Entry) -> bool:
        sha256, size = entry.target, self.stored.sizes.get(entry.target)
        if size is None:
            self.told.wrong[sha256] = "the database does not know it"
        elif size != entry.size:
            self.told.wrong[sha256] = f"a revision says it has {entry.size:,} bytes, the database {size:,}"
        return sha256 in self.told.wrong or sha256 in self.stored.blobs

    def _place(self, commit: CommitRow, path: str, sha256: str) -> None:
        if (path, sha256) in self.at:
            return
        self.at.add((path, sha256))
        if len(self.told.places[sha256]) < NAMED:
            self.told.places[sha256].append(Place(self.name, path, commit.id, self.refs.get(commit.id, ())))
        else:
            self.told.more[sha256] += 1


def _files(tree: Tree | None, below: str) -> Iterator[tuple[str, Entry]]:
    for name, entry in tree.entries.items() if tree else ():
        yield (f"{below}/{name}" if below else name), entry
