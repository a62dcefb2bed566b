"""Trees read and kept, with the last ones in memory: a tree never changes, so that nothing can become stale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.rows import add_missing
from hfbench.registry.database.schema import trees
from hfbench.registry.revisions.entries import EMPTY, Entry, Tree, unpacked_tree

REMEMBERED = 200_000
"""Entries of trees kept in memory, about 100 MB at most."""


class Trees:
    """All trees of the database, the last used in memory."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Tree] = OrderedDict({EMPTY.id: EMPTY})
        self._entries = 0

    async def load(self, connection: AsyncConnection, id: str) -> Tree:
        """The tree of that id; KeyError when the database lacks it."""
        if (tree := self._known.get(id)) is not None:
            self._known.move_to_end(id)
            return tree
        query = select(trees.c.git_id, trees.c.entries).where(trees.c.id == id)
        row = (await connection.execute(query)).first()
        if row is None:
            raise KeyError(id)
        return self._remember(unpacked_tree(id, row[0], row[1]))

    async def save(self, connection: AsyncConnection, made: Iterable[Tree]) -> None:
        """Keep trees that a commit made."""
        rows = [
            {"id": tree.id, "git_id": tree.git_id, "entries": tree.packed()}
            for tree in sorted(made, key=lambda tree: tree.id)
        ]
        await add_missing(connection, trees, rows)

    async def find(self, connection: AsyncConnection, root: str, path: str) -> Entry | None:
        """The entry at a path below a root tree; the root itself has the empty path."""
        tree = await self.load(connection, root)
        entry = Entry("", root, tree.git_id, is_folder=True)
        for part in filter(None, path.split("/")):
            found = tree.entries.get(part) if entry.is_folder else None
            if found is None:
                return None
            entry = found
            if entry.is_folder:
                tree = await self.load(connection, entry.target)
        return entry

    async def walk(
        self, connection: AsyncConnection, id: str, *, below: str = "", recursive: bool = True, after: str = ""
    ) -> AsyncIterator[tuple[str, Entry]]:
        """Paths and entries of a folder, a folder before what is in it; only those that come after a path.

        Whole folders before that path are passed over without being read.
        """
        tree = await self.load(connection, id)
        for name, entry in tree.entries.items():
            path = f"{below}/{name}" if below else name
            if not after or _key(path) > _key(after):
                yield path, entry
            elif not (entry.is_folder and after.startswith(f"{path}/")) and path != after:
                continue
            if recursive and entry.is_folder:
                async for each in self.walk(connection, entry.target, below=path, after=after):
                    yield each

    def _remember(self, tree: Tree) -> Tree:
        if tree.id not in self._known:
            self._known[tree.id] = tree
            self._entries += len(tree.entries)
        while self._entries > REMEMBERED and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            self._entries -= len(gone.entries)
        return tree


def _key(path: str) -> list[str]:
    """The order of a walk: folder by folder, by name."""
    return path.split("/")
