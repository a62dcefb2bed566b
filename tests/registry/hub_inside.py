"""A hub within this process, without sockets, and uploads as clients make them: deeds that may be done again."""

from __future__ import annotations

import asyncio
import hashlib
import random
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from test_commits import file, lines

from hfbench.registry.app import Dispatcher
from hfbench.registry.hub import Hub, open_hub
from hfbench.registry.settings import Settings
from hfbench.registry.storage.sweeping import sweep
from hfbench.registry.xet.hashes import chunk_hash, file_hash, spelled
from hfbench.registry.xet.shards import LAST_VERSION, TAG
from hfbench.registry.xet.xorbs import pack_xorb

REPO = "team/deeds"
Deed = Callable[[httpx2.AsyncClient, str, bytes], Awaitable[str]]


@asynccontextmanager
async def hub_inside(settings: Settings, token: str) -> AsyncIterator[tuple[Hub, httpx2.AsyncClient]]:
    """The hub as a server finds it that starts, and a client of it."""
    sweep(settings.layout)
    dispatcher = Dispatcher()
    dispatcher.hub = open_hub(settings)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(app=dispatcher)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url=settings.base_url, headers=headers) as client:
            yield dispatcher.hub, client
    finally:
        await dispatcher.hub.close()


async def raw_answer(
    hub: Hub, method: str, raw_path: bytes, body: bytes = b"", *, token: str = "", headers: Mapping[str, str] = {}
) -> tuple[int, bytes]:
    """Status and body of a request whose address no client library has put in order."""
    dispatcher, told = Dispatcher(), [(b"authorization", f"Bearer {token}".encode())] if token else []
    dispatcher.hub = hub
    told += [(name.encode(), value.encode()) for name, value in headers.items()]
    path, _, query = raw_path.partition(b"?")
    scope = {"type": "http", "method": method, "path": path.decode("latin-1"), "raw_path": path, "headers": told}
    sent: list[MutableMapping[str, Any]] = []
    waiting: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # the client stays until it has the answer
        return waiting.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await dispatcher({**scope, "query_string": query}, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def content_of(seed: int) -> bytes:
    """Bytes of one seed, more than are kept in the database."""
    return random.Random(seed).randbytes(90_000)


async def send_whole(client: httpx2.AsyncClient, path: str, content: bytes) -> str:
    """By Git LFS, in one piece; the commit it made."""
    return await _send_lfs(client, path, content, ["basic"])


async def send_parts(client: httpx2.AsyncClient, path: str, content: bytes) -> str:
    """By Git LFS, in parts."""
    return await _send_lfs(client, path, content, ["basic", "multipart"])


async def _send_lfs(client: httpx2.AsyncClient, path: str, content: bytes, transfers: list[str]) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    asked = {"operation": "upload", "transfers": transfers, "objects": [{"oid": sha256, "size": len(content)}]}
    told = _fine(await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)).json()["objects"][0]
    if actions := told.get("actions"):
        upload = actions["upload"]
        if header := upload.get("header"):
            length, parts = int(header.pop("chunk_size")), []
            for number, url in header.items():
                start = (int(number) - 1) * length
                etag = _fine(await client.put(url, content=content[start : start + length])).headers["etag"]
                parts.append({"partNumber": int(number), "etag": etag})
            _fine(await client.post(upload["href"], json={"oid": sha256, "parts": parts}))
        else:
            _fine(await client.put(upload["href"], content=content))
    return await commit_uploaded(client, path, sha256)


async def send_text(client: httpx2.AsyncClient, path: str, content: bytes) -> str:
    """Within the commit: one file for the disk, one for the database."""
    return await _commit(client, lines(file(path, content), file(f"{path}.txt", content[:50].hex().encode())))


async def send_xet(client: httpx2.AsyncClient, path: str, content: bytes) -> str:
    """By Xet: one xorb, and a shard of one file."""
    token = _fine(await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["accessToken"]
    headers = {"authorization": f"Bearer {token}"}
    chunks = [content[start : start + 40_000] for start in range(0, len(content), 40_000)]
    body, name = pack_xorb(chunks)
    _fine(await client.post(f"/_cas/v1/xorbs/default/{spelled(name)}", content=body, headers=headers))
    shard = shard_of(name, chunks, content)
    _fine(await client.post("/_cas/v1/shards", content=shard, headers=headers))
    return await commit_uploaded(client, path, hashlib.sha256(content).hexdigest())


def shard_of(xorb: bytes, chunks: list[bytes], content: bytes) -> bytes:
    """The shard of a file that is one stretch of one xorb, as clients write it."""
    name = file_hash([(chunk_hash(chunk), len(chunk)) for chunk in chunks])
    sha256 = bytes.fromhex(spelled(hashlib.sha256(content).digest()))
    rows = struct.pack("<32sII8x", name, 1 << 30, 1) + struct.pack("<32sIIII", xorb, 0, len(content), 0, len(chunks))
    bookend = b"\xff" * 32 + bytes(16)
    return TAG + struct.pack("<QQ", LAST_VERSION, 0) + rows + sha256 + bytes(16) + bookend + bookend


async def commit_uploaded(client: httpx2.AsyncClient, path: str, sha256: str) -> str:
    """Name what was uploaded."""
    return await _commit(client, lines(("lfsFile", {"path": path, "algo": "sha256", "oid": sha256})))


async def _commit(client: httpx2.AsyncClient, body: bytes) -> str:
    return str(_fine(await client.post(f"/api/models/{REPO}/commit/main", content=body)).json()["commitOid"])


def _fine(answer: httpx2.Response) -> httpx2.Response:
    assert answer.status_code == 200, (answer.request.url.path, answer.status_code, answer.text)
    return answer


DEEDS: dict[str, Deed] = {"whole": send_whole, "parts": send_parts, "text": send_text, "xet": send_xet}
