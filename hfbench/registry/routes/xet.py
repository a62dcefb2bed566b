"""Uploads by Xet: a token for one repository, xorbs, shards, and answers about chunks that are known.

The content-addressed store is on the hub's own address. Nothing is handed out by it: downloads are plain files.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, Response

from hfbench.registry.access.caller import Caller
from hfbench.registry.access.rules import may_see
from hfbench.registry.call import Call
from hfbench.registry.database.content import add_xorb, has_xorb, hold_xorbs, xorb_with_chunk, xorbs_beside
from hfbench.registry.database.people import caller_of_token
from hfbench.registry.database.repos import Repo, repo_by_id
from hfbench.registry.errors import BadRequest, BadToken, Refusal, RepoNotFound
from hfbench.registry.quotas import require_room
from hfbench.registry.routing import router
from hfbench.registry.storage.xorbs import receive_xorb
from hfbench.registry.xet.hashes import is_asked_for, spelled, unspelled
from hfbench.registry.xet.shards import ShardError, known_chunks, read_shard
from hfbench.registry.xet.xorbs import XorbError, XorbIndex
from hfbench.registry.xet_ingest import take_files
from hfbench.units import MIB

PURPOSE = "xet"
LARGEST_SHARD = 128 * MIB
MOST_XORBS = 255
"""Xorbs told of beside the one asked for: 16 GiB of content, 12 MiB of answer."""


@router.get("/api/{kind}/{namespace}/{name}/xet-write-token/{revision}")
async def write_token(call: Call) -> Response:
    """A token with which a client may send content for this repository."""
    async with call.hub.database.reading() as connection:
        repo = await call.writable_repo(connection)
        await call.revision(connection, repo)
        caller = await call.caller(connection)
    seconds = call.hub.settings.link_seconds
    token = call.hub.signer.seal(PURPOSE, {"repo": repo.id, "token": caller.token}, seconds=seconds)
    until, url = int(time.time()) + seconds, call.url("_cas")
    return JSONResponse(
        {"casUrl": url, "exp": until, "accessToken": token},
        headers={"X-Xet-Cas-Url": url, "X-Xet-Access-Token": token, "X-Xet-Token-Expiration": str(until)},
    )


@router.get("/_cas/v1/chunks/{prefix}/{hash}")
async def chunk(call: Call) -> Response:
    """The xorb that holds a chunk, where the caller could read it anyway; else it is not known."""
    hash = _hash(call)
    async with call.hub.database.reading() as connection:
        repo, caller = await _allowed(call, connection)
        found = await xorb_with_chunk(connection, repo.id, caller, spelled(hash)) if call.hub.keeps_xorbs else None
        if found is None:
            raise Refusal(404, "This chunk is not known.")
        name, packed = found
        beside = await xorbs_beside(connection, repo.id, caller, name, MOST_XORBS)
    xorbs = {unspelled(each): XorbIndex.unpack(index) for each, index in {name: packed, **beside}.items()}
    body = await asyncio.to_thread(known_chunks, xorbs)
    return Response(body, media_type="application/octet-stream")


@router.post("/_cas/v1/xorbs/{prefix}/{hash}")
async def xorb(call: Call) -> Response:
    """A xorb: unpacked, hashed and kept, or refused."""
    hash = _hash(call)
    name = spelled(hash)
    async with call.hub.database.reading() as connection:
        repo, _ = await _allowed(call, connection)
        known = await has_xorb(connection, name)
        announced = call.request.headers.get("content-length", "")
        await require_room(connection, call.hub.settings, repo, int(announced) if announced.isdecimal() else 1)
    try:
        index, size = await receive_xorb(call.hub, call.stream(), hash, keep=not known)
    except XorbError as error:
        raise BadRequest(str(error)) from error
    async with call.hub.database.writing() as connection:
        asked_for = [spelled(chunk.hash) for chunk in index.chunks if is_asked_for(chunk.hash)]
        await add_xorb(connection, name, size, index.pack(), asked_for)
        await hold_xorbs(connection, repo.id, [name])
    return JSONResponse({"was_inserted": not known})


@router.post("/_cas/v1/shards")
async def shard(call: Call) -> Response:
    """What the xorbs make: every file is compared with its hashes before it is known."""
    async with call.hub.database.reading() as connection:
        repo, caller = await _allowed(call, connection)
    try:
        files = read_shard(await call.body(LARGEST_SHARD))
    except ShardError as error:
        raise BadRequest(str(error)) from error
    await take_files(call.hub, repo, caller, files)
    return JSONResponse({"result": 1})


async def _allowed(call: Call, connection: AsyncConnection) -> tuple[Repo, Caller]:
    """The repository and account of a Xet token, asked for again each time: a revoked token ends at once."""
    scheme, _, sealed = call.request.headers.get("authorization", "").partition(" ")
    claims: dict[str, Any] | None = (
        call.hub.signer.open(PURPOSE, sealed.strip()) if scheme.lower() == "bearer" else None
    )
    caller = await caller_of_token(connection, claims["token"]) if claims else None
    if claims is None or caller is None:
        raise BadToken
    repo = await repo_by_id(connection, claims["repo"])
    if repo is None or not may_see(caller, repo):
        raise RepoNotFound(anonymous=False)
    call.require_write(repo, caller)
    return repo, caller


def _hash(call: Call) -> bytes:
    try:
        return unspelled(call.params["hash"])
    except ValueError as error:
        raise BadRequest("The address has no hash.") from error
