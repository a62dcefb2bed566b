"""Uploads by Git LFS: a batch is answered with links that carry their own permission, then the bytes come."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, Response

from hfbench.registry.access.rules import may_write
from hfbench.registry.call import Call
from hfbench.registry.database.content import FILE, LOST, Blob, add_blob, find_blob, held_blobs, hold_blobs
from hfbench.registry.database.people import caller_of_token
from hfbench.registry.database.repos import Repo, repo_by_id
from hfbench.registry.database.room import end_promise
from hfbench.registry.errors import BadRequest, Forbidden, Refusal, TooLarge
from hfbench.registry.names import SHA256, is_size
from hfbench.registry.quotas import promise_room, require_kept_within
from hfbench.registry.routing import router
from hfbench.registry.storage.blobs import complete_parts, receive_blob, receive_part, require_kept

LFS_JSON = "application/vnd.git-lfs+json"
MOST_OBJECTS = 1000
MOST_PARTS = 10_000
MOST_PARTS_OF_ALL = 65_536
"""Parts of all objects of a batch: each is a link in the answer."""
WHOLE, PART, COMPLETE = "lfs.whole", "lfs.part", "lfs.complete"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object of a batch."""

    sha256: str
    size: int


@router.post("/{namespace}/{git}/info/lfs/objects/batch")
async def batch(call: Call) -> Response:
    """Links for what the hub lacks, of a model."""
    return await _batch(call)


@router.post("/{kind}/{namespace}/{git}/info/lfs/objects/batch")
async def batch_of_kind(call: Call) -> Response:
    """Links for what the hub lacks, of a dataset."""
    return await _batch(call)


async def _batch(call: Call) -> Response:
    given = await call.json()
    if given.get("operation") != "upload":
        raise Refusal(501, "This hub hands files out by resolve, not by LFS.", code="NotImplemented")
    objects = given.get("objects")
    if not isinstance(objects, list) or len(objects) > MOST_OBJECTS:
        raise BadRequest(f"objects is no list of at most {MOST_OBJECTS}.")
    wanted = [_wanted(each) for each in objects]
    transfers = given.get("transfers") or ["basic"]
    if not isinstance(transfers, list):
        raise BadRequest("transfers is no list.")
    multipart = "multipart" in transfers
    if multipart and (parts := _parts_of_all(call, wanted)) > MOST_PARTS_OF_ALL:
        raise TooLarge(f"The batch has {parts:,} parts, and {MOST_PARTS_OF_ALL:,} at most are taken: make several.")
    async with call.hub.database.writing() as connection:
        repo = await _writable(call, connection)
        caller = await call.caller(connection)
        held = await held_blobs(connection, repo.id, caller, [each.sha256 for each in wanted])
        await hold_blobs(connection, repo.id, held)
        absent = {each.sha256: each.size for each in wanted if each.sha256 not in held}
        await promise_room(connection, call.hub.settings, repo, absent)
    who = {"repo": repo.id, "token": caller.token}

    def answer() -> Response:
        told = [_told(call, who, each, known=each.sha256 in held, multipart=multipart) for each in wanted]
        in_parts = any("header" in each.get("actions", {}).get("upload", {}) for each in told)
        transfer = "multipart" if in_parts else "basic"
        return JSONResponse({"transfer": transfer, "objects": told}, media_type=LFS_JSON)

    return await asyncio.to_thread(answer)  # thousands of links are signed while others are served


def _parts_of_all(call: Call, wanted: list[Wanted]) -> int:
    """Links that a batch asks for; an object of too many parts gets none."""
    settings = call.hub.settings
    counts = (ceil(each.size / settings.part_bytes) for each in wanted if each.size >= settings.multipart_bytes)
    return sum(count for count in counts if count <= MOST_PARTS)


@router.post("/{namespace}/{git}/info/lfs/objects/verify")
async def verify(call: Call) -> Response:
    """Whether an object arrived, of a model."""
    return await _verify(call)


@router.post("/{kind}/{namespace}/{git}/info/lfs/objects/verify")
async def verify_of_kind(call: Call) -> Response:
    """Whether an object arrived, of a dataset."""
    return await _verify(call)


async def _verify(call: Call) -> Response:
    wanted = _wanted(await call.json())
    async with call.hub.database.reading() as connection:
        repo = await _writable(call, connection)
        held = await held_blobs(connection, repo.id, await call.caller(connection), [wanted.sha256])
    if held.get(wanted.sha256) != wanted.size:
        raise Refusal(404, "This object has not arrived.")
    return JSONResponse({}, media_type=LFS_JSON)


@router.put("/_lfs/whole/{sealed}")
async def put_whole(call: Call) -> Response:
    """The bytes of one object."""
    claims = await _claims(call, WHOLE)
    async with call.hub.database.reading() as connection:
        known = await find_blob(connection, claims["sha256"])
    keep = known is None or known.place in (FILE, LOST)  # what is there may be damaged
    await receive_blob(call.hub.layout, call.stream(), claims["sha256"], claims["size"], keep=keep)
    if keep:
        call.hub.trust.note(call.hub.layout.blob(claims["sha256"]))
    await _arrived(call, claims)
    return Response(status_code=200)


@router.put("/_lfs/part/{sealed}")
async def put_part(call: Call) -> Response:
    """The bytes of one part of an object."""
    claims = await _claims(call, PART)
    path = call.hub.layout.uploads / claims["upload"]
    await receive_part(call.hub.layout, path, call.stream(), claims["start"], claims["size"])
    return Response(status_code=200, headers={"ETag": f'"{claims["number"]}"'})


@router.post("/_lfs/complete/{sealed}")
async def complete(call: Call) -> Response:
    """All parts are sent: they are hashed, and kept when they make the object."""
    claims = await _claims(call, COMPLETE)
    given = (await call.json()).get("parts")
    numbers = {part.get("partNumber") for part in given if isinstance(part, dict)} if isinstance(given, list) else set()
    if numbers != set(range(1, claims["parts"] + 1)):
        raise BadRequest(f"The upload has {claims['parts']} parts, {len(numbers)} were named.")
    path = call.hub.layout.uploads / claims["upload"]
    if await asyncio.to_thread(complete_parts, call.hub.layout, path, claims["sha256"], claims["size"]):
        call.hub.trust.note(call.hub.layout.blob(claims["sha256"]))
    await _arrived(call, claims)
    return JSONResponse({})


async def _arrived(call: Call, claims: dict[str, Any]) -> None:
    """The bytes are on the disk: the database is told, and the repository holds them."""
    async with call.hub.database.writing() as connection:
        repo = await repo_by_id(connection, claims["repo"])
        if repo is None:
            raise Refusal(404, "The repository of this upload is gone.")
        known = await find_blob(connection, claims["sha256"])
        if known is None or known.place in (FILE, LOST):
            require_kept(call.hub.layout.blob(claims["sha256"]), claims["size"])
        await add_blob(connection, Blob(claims["sha256"], claims["size"], FILE))
        await hold_blobs(connection, repo.id, [claims["sha256"]])
        await end_promise(connection, repo.id, [claims["sha256"]])
        await require_kept_within(connection, call.hub.settings, repo)


async def _writable(call: Call, connection: AsyncConnection) -> Repo:
    name = call.params["git"]
    if not name.endswith(".git"):
        raise Refusal(404, "There is nothing at this address.")
    repo = await call.repo_named(connection, call.kind, call.params["namespace"], name.removesuffix(".git"))
    call.require_write(repo, await call.caller(connection))
    return repo


async def _claims(call: Call, purpose: str) -> dict[str, Any]:
    """What a link permits; Forbidden once whoever asked for it may not write any more."""
    claims = call.hub.signer.open(purpose, call.params["sealed"])
    if claims is None:
        raise Forbidden("This upload link is not one of this hub, or has expired: ask for a new one.")
    async with call.hub.database.reading() as connection:
        caller = await caller_of_token(connection, claims["token"])
        repo = await repo_by_id(connection, claims["repo"])
    if repo is None:
        raise Refusal(404, "The repository of this upload is gone.")
    if caller is None or not may_write(caller, repo):
        raise Forbidden("The token by which this upload was begun may not write there any more.")
    return claims


def _told(call: Call, who: dict[str, int], wanted: Wanted, *, known: bool, multipart: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"oid": wanted.sha256, "size": wanted.size}
    if known:
        return told
    settings = call.hub.settings
    claims: dict[str, Any] = {**who, "sha256": wanted.sha256, "size": wanted.size}
    if not multipart or wanted.size < settings.multipart_bytes:
        return told | {"actions": {"upload": {"href": _link(call, WHOLE, claims)}}}
    if ceil(wanted.size / settings.part_bytes) > MOST_PARTS:
        message = f"{wanted.size:,} bytes are more than {MOST_PARTS:,} parts hold."
        return told | {"error": {"code": 422, "message": message}}
    claims |= {"upload": secrets.token_hex(16), "parts": ceil(wanted.size / settings.part_bytes)}
    header = {"chunk_size": str(settings.part_bytes)}
    header |= {str(part["number"]): _link(call, PART, part) for part in _parts(claims, settings.part_bytes)}
    return told | {"actions": {"upload": {"href": _link(call, COMPLETE, claims), "header": header}}}


def _parts(claims: dict[str, Any], length: int) -> Iterator[dict[str, Any]]:
    for place in range(claims["parts"]):
        start = place * length
        size = min(length, claims["size"] - start)
        who = {name: claims[name] for name in ("repo", "token", "upload")}
        yield {**who, "number": place + 1, "start": start, "size": size}


def _link(call: Call, purpose: str, claims: dict[str, Any]) -> str:
    sealed = call.hub.signer.seal(purpose, claims, seconds=call.hub.settings.link_seconds)
    return call.url(f"_lfs/{purpose.partition('.')[2]}/{sealed}")


def _wanted(given: Any) -> Wanted:
    sha256, size = (given.get("oid"), given.get("size")) if isinstance(given, dict) else (None, None)
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        raise BadRequest("An object's oid is no SHA-256.")
    if not is_size(size):
        raise BadRequest(f"The object {sha256} has no size.")
    return Wanted(sha256, size)
