"""Which commit last touched a path: found by walking back until the path was another, or was not there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.history import Commit, log
from hfbench.registry.revisions.trees import Trees

STRIDE = 100
FARTHEST = 2000
"""Commits looked back at; what did not change within them is said to be of the last one seen."""


async def last_changes(
    connection: AsyncConnection, trees: Trees, repo: int, start: Commit, paths: Sequence[str]
) -> dict[str, Commit]:
    """The last commit that changed each path of a revision."""
    open_paths = {path: await trees.find(connection, start.tree, path) for path in paths}
    found: dict[str, Commit] = {}
    seen, current = 0, start
    while open_paths:
        before = await log(connection, repo, current.id, STRIDE + 1)
        for older in before[1:]:
            seen += 1
            if older.tree != current.tree:
                for path, entry in list(open_paths.items()):
                    if await trees.find(connection, older.tree, path) != entry:
                        found[path] = current
                        del open_paths[path]
            current = older
        if len(before) <= STRIDE or seen >= FARTHEST:
            break
    return found | dict.fromkeys(open_paths, current)
