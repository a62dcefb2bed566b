"""Judges the model that a commit would make: the tree it leads to, laid out as a folder, in a process with limits."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.models.files import kind_of
from hfbench.registry.database.history import find_revision
from hfbench.registry.database.repos import Repo
from hfbench.registry.errors import Refusal
from hfbench.registry.hub import Hub
from hfbench.registry.judging.folder_child import NotJudged, judge_apart
from hfbench.registry.judging.shadow import make_shadow
from hfbench.registry.revisions.changes import Changes, apply
from hfbench.registry.revisions.commit import Draught
from hfbench.registry.revisions.entries import Tree
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.storage.reading import Plan
from hfbench.registry.storage.rebuilding import DamagedError
from hfbench.registry.storage.threads import in_a_thread

SECONDS = 30.0
"""How long judging may take: a client waits for the answer."""
MOST_FILES = 5000
KINDS = ("config", "tokenizer", "index", "weights")
"""Kinds of files by which something is a model, and whose change makes it another."""
NOT_JUDGED = f"the model could not be judged within {SECONDS:.0f} s"


class _Drafted(Trees):
    """Trees of the hub, and those that a commit would make."""

    def __init__(self, hub: Hub, made: Iterable[Tree]) -> None:
        super().__init__()
        self._hub, self._made = hub, {tree.id: tree for tree in made}

    async def load(self, connection: AsyncConnection, id: str) -> Tree:
        return self._made.get(id) or await self._hub.trees.load(connection, id)


async def model_problems(
    hub: Hub, repo: Repo, branch: str, draught: Draught, sizes: Mapping[str, int]
) -> dict[str, list[str]]:
    """Sentences by the file they are about; empty where the commit changes no model. `sizes` are those of uploads."""
    if repo.kind != "model" or not any(kind_of(path) in KINDS for path in _touched(draught.changes)):
        return {}
    plans = await _plans(hub, repo, branch, draught, sizes)
    if not any("/" not in path and kind_of(path) in KINDS for path in plans):
        return {}
    async with hub.judging:
        with tempfile.TemporaryDirectory(prefix="hfbench-judged-") as name:
            await asyncio.to_thread(make_shadow, Path(name), repo.full_name, plans, hub.reader)
            return await _judged(Path(name), repo.full_name)


def _touched(changes: Changes, below: str = "") -> Iterator[str]:
    """Every path that is put or deleted; a folder that goes counts as a model's file, whatever was in it."""
    yield from (f"{below}{name}" for name in changes.files)
    for name, folder in changes.folders.items():
        if folder.cleared:
            yield f"{below}{name}/config.json"
        yield from _touched(folder, f"{below}{name}/")


async def _plans(hub: Hub, repo: Repo, branch: str, draught: Draught, sizes: Mapping[str, int]) -> dict[str, Plan]:
    """How to read the files of the tree that the commit leads to; none when it will be refused anyway."""
    plans: dict[str, Plan] = {}
    async with hub.database.reading() as connection:
        head = await find_revision(connection, repo.id, branch)
        if head is None or not draught.uploads.keys() <= sizes.keys():
            return {}
        try:
            tree, made = await apply(draught.changes, hub.trees, connection, head.tree)
        except Refusal:
            return {}
        async for path, entry in _Drafted(hub, [tree, *made]).walk(connection, tree.id):
            if len(plans) >= MOST_FILES:
                break
            if not entry.is_folder:
                try:
                    plans[path] = await hub.reader.plan(connection, entry.target)
                except DamagedError:
                    plans[path] = Plan(entry.target, entry.size, content=b"")
    return plans


async def _judged(folder: Path, name: str) -> dict[str, list[str]]:
    try:
        told = await in_a_thread(judge_apart, folder, name, SECONDS)
    except TimeoutError:
        return {"": [NOT_JUDGED]}
    except NotJudged as error:
        return {"": [f"the model could not be judged: {error}"]}
    found: dict[str, list[str]] = {}
    for id, file, message in told:
        found.setdefault(file, []).append(f"{file}: {message} ({id})" if file else f"{message} ({id})")
    return found
