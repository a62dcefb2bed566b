"""A private repository: in no list, behind no hash, and by no answer told from one that is not there."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, send_xet, shard_of
from hub_process import HubProcess

from hfbench.registry.hub import Hub
from hfbench.registry.xet.hashes import chunk_hash, spelled
from hfbench.registry.xet.xorbs import pack_xorb

Inside = tuple[Hub, httpx2.AsyncClient]
CONTENT = content_of(9)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
CHUNKS = [CONTENT[start : start + 40_000] for start in range(0, len(CONTENT), 40_000)]
CHUNK = spelled(chunk_hash(CHUNKS[0]))
SHARD = shard_of(pack_xorb(CHUNKS)[1], CHUNKS, CONTENT)


@pytest.fixture
async def hidden(resting: HubProcess, inside: Inside) -> Inside:
    """The repository with a file of Xet, private, and a client of a stranger who has one of his own."""
    hub, client = inside
    await send_xet(client, "x.bin", CONTENT)
    await client.put(f"/api/models/{REPO}/settings", json={"private": True})
    client.headers["authorization"] = f"Bearer {resting.stranger}"
    await client.post("/api/repos/create", json={"name": "own"})
    return hub, client


def shape(answer: httpx2.Response) -> tuple[object, ...]:
    told = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return answer.status_code, answer.text, told


async def test_it_looks_like_one_that_is_not_there(resting: HubProcess, hidden: Inside) -> None:
    for token in (resting.stranger, ""):
        async with hub_inside(resting.settings, token) as (_, client):
            for method, address in (
                ("HEAD", "/{}/resolve/main/x.bin"),
                ("GET", "/{}/resolve/main/x.bin"),
                ("GET", "/api/models/{}"),
                ("GET", "/api/models/{}/tree/main"),
                ("GET", "/api/models/{}/refs"),
                ("POST", "/api/models/{}/paths-info/main"),
                ("GET", "/api/models/{}/auth-check"),
                ("GET", "/{}/info/refs?service=git-upload-pack"),
                ("GET", "/{}.git/info/refs"),
                ("POST", "/{}/ask-access"),
            ):
                there, absent = [
                    await client.request(method, address.format(name), content=b"paths=x.bin")
                    for name in (REPO, "team/absent")
                ]
                assert shape(there) == shape(absent), address


async def test_no_list_and_no_search_has_it(hidden: Inside) -> None:
    _, client = hidden
    for query in ("", "?search=deeds", "?search=team%2Fde", "?author=team", "?full=true", "?sort=downloads&limit=1000"):
        assert REPO not in [each["id"] for each in (await client.get(f"/api/models{query}")).json()]


async def test_its_hashes_open_nothing(hidden: Inside) -> None:
    _, client = hidden
    asked: dict[str, Any] = {"operation": "upload", "objects": [{"oid": SHA256, "size": len(CONTENT)}]}
    told = (await client.post("/stranger/own.git/info/lfs/objects/batch", json=asked)).json()["objects"][0]
    assert "actions" in told, "who cannot read it has to send it"
    verified = await client.post("/stranger/own.git/info/lfs/objects/verify", json=asked["objects"][0])
    assert verified.status_code == 404
    token = (await client.get("/api/models/stranger/own/xet-write-token/main")).json()["accessToken"]
    cas = {"authorization": f"Bearer {token}"}
    assert (await client.get(f"/_cas/v1/chunks/default/{CHUNK}", headers=cas)).status_code == 404
    assert (await client.post("/_cas/v1/shards", content=SHARD, headers=cas)).status_code == 400
    step = b'{"key": "lfsFile", "value": {"path": "x.bin", "algo": "sha256", "oid": "%s"}}' % SHA256.encode()
    body = b'{"key": "header", "value": {"summary": "s"}}\n' + step
    assert (await client.post("/api/models/stranger/own/commit/main", content=body)).status_code == 400


async def test_who_may_read_it_is_told_of_its_chunks(resting: HubProcess, hidden: Inside) -> None:
    """So that the test above fails for the right reason."""
    async with hub_inside(resting.settings, resting.writer) as (_, client):
        token = (await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["accessToken"]
        cas = {"authorization": f"Bearer {token}"}
        assert (await client.get(f"/_cas/v1/chunks/default/{CHUNK}", headers=cas)).status_code == 200
        assert (await client.post("/_cas/v1/shards", content=SHARD, headers=cas)).status_code == 200
