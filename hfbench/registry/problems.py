"""What is wrong with a commit: with the model it would make, and with each file it would add."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from hfbench.models.magic import is_lfs_pointer
from hfbench.models.safetensors import HeaderError, read_header
from hfbench.registry.access.caller import Caller
from hfbench.registry.database.content import held_blobs
from hfbench.registry.database.repos import Repo
from hfbench.registry.hub import Hub
from hfbench.registry.judging.model import model_problems
from hfbench.registry.revisions.commit import Draught
from hfbench.registry.revisions.entries import Entry
from hfbench.registry.storage.rebuilding import DamagedError
from hfbench.units import MIB

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx")
LARGEST_JSON = 64 * MIB
SMALL = 2048
"""Bytes up to which a file may be a pointer."""


async def problems(hub: Hub, repo: Repo, branch: str, draught: Draught, caller: Caller) -> list[str]:
    """One sentence a problem, with its path. Looks only at what the caller may read.

    Pointers, cut weights and broken JSON are found in every added file; what is wrong with the model as a whole, by
    the rules of `hfbench check`.
    """
    sizes = await _sizes(hub, repo, draught, caller)
    of_model = await model_problems(hub, repo, branch, draught, sizes)
    of_files = [
        found
        for path, entry in draught.changes.added()
        if path not in of_model
        async for found in _look(hub, path, entry, sizes)
    ]
    return [*of_files, *(found for some in of_model.values() for found in some)]


async def _sizes(hub: Hub, repo: Repo, draught: Draught, caller: Caller) -> dict[str, int]:
    async with hub.database.reading() as connection:
        held = await held_blobs(connection, repo.id, caller, draught.uploads)
    return held | {entry.target: entry.size for _, entry in draught.changes.added() if not entry.is_lfs}


async def _look(hub: Hub, path: str, entry: Entry, sizes: dict[str, int]) -> AsyncIterator[str]:
    size = sizes.get(entry.target)
    is_weights, is_json = path.endswith(WEIGHTS), path.endswith(".json")
    if size is None or not (is_weights or is_json):
        return
    try:
        async with hub.database.reading() as connection:
            plan = await hub.reader.plan(connection, entry.target)
        if is_weights and size <= SMALL and is_lfs_pointer(await hub.reader.read(plan, SMALL)):
            yield f"{path} is a git-lfs pointer, not the file itself: run git lfs pull and upload again"
        elif path.endswith(".safetensors"):

            def check() -> None:
                with hub.reader.open(plan) as file:
                    read_header(file, plan.size)

            await asyncio.to_thread(check)
        elif is_json and size <= LARGEST_JSON:
            json.loads(await hub.reader.read(plan, LARGEST_JSON))
    except HeaderError as error:
        yield f"{path}: {error}".rstrip(".")
    except (ValueError, RecursionError) as error:
        yield f"{path} is no JSON: {error}"
    except DamagedError:
        yield f"{path} is damaged on the hub"
