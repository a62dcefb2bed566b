"""Uploads by Xet: a token for one repository, xorbs, shards, and answers about chunks that are known.

The content-addressed store is on the hub's own address. Nothing is handed out by it: downloads are plain files.
Clients remember for three weeks which xorbs they sent to which address, and do not ask whether those are still there.
So the address names the repository, and changes when xorbs are withdrawn.
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
from hfbench.registry.database.audit import last_withdrawal
from hfbench.registry.database.content import (
    add_xorb,
    held_xorbs,
    hold_xorbs,
    renew_xorbs,
    stale_xorbs,
    xorb_indexes,
    xorb_with_chunk,
    xorbs_beside,
)
from hfbench.registry.database.people import caller_of_token
from hfbench.registry.database.repos import Repo, repo_by_id
from hfbench.registry.database.room import end_promise
from hfbench.registry.errors import BadRequest, BadToken, Refusal, RepoNotFound
from hfbench.registry.hub import Hub
from hfbench.registry.quotas import limit_of, promise_room
from hfbench.registry.routing import router
from hfbench.registry.storage.blobs import require_kept
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
        scope = f"r{repo.id}-{await _generation(call.hub, connection)}"
    seconds = call.hub.settings.link_seconds
    token = call.hub.signer.seal(PURPOSE, {"repo": repo.id, "token": caller.token}, seconds=seconds)
    until, url = int(time.time()) + seconds, call.url(f"_cas/{scope}")
    return JSONResponse(
        {"casUrl": url, "exp": until, "accessToken": token},
        headers={"X-Xet-Cas-Url": url, "X-Xet-Access-Token": token, "X-Xet-Token-Expiration": str(until)},
    )


async def _generation(hub: Hub, connection: AsyncConnection) -> int:
    """What was remembered under another number is sent again. Where xorbs are kept for a while, so is the number."""
    if hub.keeps_xorbs:
        return await last_withdrawal(connection)
    return int(time.time() // hub.settings.link_seconds)


@router.get("/_cas/{scope}/v1/chunks/{prefix}/{hash}")
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
        stale = await stale_xorbs(connection, {name, *beside})
    if stale:
        async with call.hub.database.writing() as connection:
            await renew_xorbs(connection, stale)
    xorbs = {unspelled(each): XorbIndex.unpack(index) for each, index in {name: packed, **beside}.items()}
    body = await asyncio.to_thread(known_chunks, xorbs)
    return Response(body, media_type="application/octet-stream")


@router.post("/_cas/{scope}/v1/xorbs/{prefix}/{hash}")
@router.post("/_cas/v1/xorbs/{prefix}/{hash}")
async def xorb(call: Call) -> Response:
    """A xorb: unpacked, hashed and kept, or refused."""
    hash = _hash(call)
    name = spelled(hash)
    async with call.hub.database.reading() as connection:
        repo, caller = await _allowed(call, connection)
        is_held = bool(await held_xorbs(connection, repo.id, caller, [name]))
        known = (await xorb_indexes(connection, [name])).get(name)
        is_limited = bool(await limit_of(connection, call.hub.settings, repo))
    if is_limited and not is_held:
        announced = call.request.headers.get("content-length", "")
        async with call.hub.database.writing() as connection:
            size = int(announced) if announced.isdecimal() else 1
            await promise_room(connection, call.hub.settings, repo, {name: size})
    try:
        received = await receive_xorb(call.hub, call.stream(), hash, known)
    except XorbError as error:
        raise BadRequest(str(error)) from error
    async with call.hub.database.writing() as connection:
        if received is not None:
            index, size = received
            require_kept(call.hub.layout.xorb(name), size)
            asked_for = [spelled(chunk.hash) for chunk in index.chunks if is_asked_for(chunk.hash)]
            await add_xorb(connection, name, size, index.pack(), asked_for)
        elif not await xorb_indexes(connection, [name]):
            raise Refusal(503, "The upload met a sweep: send it again.", headers={"Retry-After": "1"})
        await hold_xorbs(connection, repo.id, [name])
        await end_promise(connection, repo.id, [name])
    return JSONResponse({"was_inserted": not is_held})  # nothing is told of what others sent


@router.post("/_cas/{scope}/v1/shards")
@router.post("/_cas/v1/shards")
async def shard(call: Call) -> Response:
    """What the xorbs make: every file is compared with its hashes before it is known."""
    async with call.hub.database.reading() as connection:
        repo, caller = await _allowed(call, connection)
    try:
        files = read_shard(await call.body(LARGEST_SHARD, is_known=True))
    except ShardError as error:
        raise BadRequest(str(error)) from error
    await call.unless_left(take_files(call.hub, repo, caller, files))
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
