"""The page of a repository, and whether somebody may open it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import JSONResponse, Response

from hfbench.models.safetensors import PREFIX, HeaderError, read_header
from hfbench.registry import wire
from hfbench.registry.call import Call
from hfbench.registry.database.content import repo_bytes
from hfbench.registry.database.repos import tags_of
from hfbench.registry.errors import BadRequest, EntryNotFound, TooLarge
from hfbench.registry.facts import facts_of, refresh
from hfbench.registry.front_matter import FrontMatterError, read_front_matter
from hfbench.registry.names import path_trouble
from hfbench.registry.routing import router
from hfbench.registry.storage.reading import Plan
from hfbench.units import MIB

MOST_SIBLINGS = 50_000
LARGEST_INDEX, MOST_SHARDS = 32 * MIB, 2000
SHOWN = ("config", "cardData", "safetensors", "pipeline_tag", "library_name")


@router.get("/api/{kind}/{namespace}/{name}")
async def info(call: Call) -> Response:
    """A repository at `main`."""
    return await _info(call)


@router.get("/api/{kind}/{namespace}/{name}/revision/{revision}")
async def info_at(call: Call) -> Response:
    """A repository at a revision."""
    return await _info(call)


async def _info(call: Call) -> Response:
    with_blobs = call.flag("blobs")
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        commit = await call.revision(connection, repo)
        siblings = []
        async for path, entry in call.hub.trees.walk(connection, commit.tree):
            if not entry.is_folder:
                siblings.append(wire.sibling(path, entry, with_blob=with_blobs))
            if len(siblings) >= MOST_SIBLINGS:
                break
        used = await repo_bytes(connection, repo.id)
        tags = (await tags_of(connection, [repo.id])).get(repo.id, [])
    facts = await facts_of(call.hub, commit.tree)
    if "revision" not in call.params:
        await refresh(call.hub, repo)
        tags = facts.get("tags", tags)
    told = wire.repo(repo, commit.id, tags) | {"siblings": siblings, "usedStorage": used}
    told |= {name: facts[name] for name in SHOWN if facts.get(name)}
    return JSONResponse(told)


@router.get("/api/{kind}/{namespace}/{name}/auth-check")
async def auth_check(call: Call) -> Response:
    """Whether the caller may read the files."""
    async with call.hub.database.reading() as connection:
        await call.open_repo(connection)
    return JSONResponse({})


@router.get("/api/{kind}/{namespace}/{name}/auth-check/write")
async def auth_check_write(call: Call) -> Response:
    """Whether the caller may write."""
    async with call.hub.database.reading() as connection:
        await call.writable_repo(connection)
    return JSONResponse({})


@router.post("/api/validate-yaml")
async def validate_yaml(call: Call) -> Response:
    """What is wrong with a card before it is committed."""
    content = (await call.json()).get("content")
    errors = []
    try:
        read_front_matter(content if isinstance(content, str) else "")
    except FrontMatterError as error:
        errors.append({"message": str(error)})
    return JSONResponse({"errors": errors, "warnings": []}, 400 if errors else 200)


@router.get("/api/{kind}/{namespace}/{name}/safetensors-metadata/{path...}")
async def safetensors_metadata(call: Call) -> Response:
    """The headers of all shards an index names, and the index."""
    path = call.params["path"]
    async with call.hub.database.reading() as connection:
        repo = await call.open_repo(connection)
        commit = await call.revision(connection, repo)
        entry = None if path_trouble(path) else await call.hub.trees.find(connection, commit.tree, path)
        if entry is None or entry.is_folder:
            raise EntryNotFound(path, commit.id)
        if entry.size > LARGEST_INDEX:
            raise TooLarge(f"{path} is too large for an index.")
        index = _index(await call.hub.reader.read(await call.hub.reader.plan(connection, entry.target), entry.size))
        plans: dict[str, Plan] = {}
        for shard in sorted(set(index["weight_map"].values())):
            beside = f"{path.rpartition('/')[0]}/{shard}".lstrip("/")
            found = None if path_trouble(beside) else await call.hub.trees.find(connection, commit.tree, beside)
            if found is None or found.is_folder:
                raise EntryNotFound(beside, commit.id)
            plans[shard] = await call.hub.reader.plan(connection, found.target)
    headers = await asyncio.to_thread(lambda: {shard: _header(call, shard, plan) for shard, plan in plans.items()})
    return JSONResponse({"headers": headers, "index": {"metadata": index.get("metadata") or {}}})


def _index(text: bytes) -> dict[str, Any]:
    try:
        index = json.loads(text)
        shards = set(index["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRequest("The file is no index of safetensors shards.") from error
    if not all(isinstance(shard, str) for shard in shards) or len(shards) > MOST_SHARDS:
        raise BadRequest("The file is no index of safetensors shards.")
    return dict(index)


def _header(call: Call, shard: str, plan: Plan) -> dict[str, Any]:
    """The header as it stands in the file, after it was found to be sound."""
    try:
        with call.hub.reader.open(plan) as file:
            length = read_header(file, plan.size).header_bytes - PREFIX
            file.seek(PREFIX)
            told: dict[str, Any] = json.loads(file.read(length))
            return told
    except HeaderError as error:
        raise BadRequest(f"{shard}: {error}") from error
