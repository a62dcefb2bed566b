"""Bodies that are not what was said of them, links that were changed, and commits that name what never came."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hub_inside import REPO, commit_uploaded, content_of, send_whole, shard_of
from hub_process import HubProcess

from hfbench.registry.access.links import Signer
from hfbench.registry.hub import Hub
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.xorbs import pack_xorb

Inside = tuple[Hub, httpx2.AsyncClient]
CONTENT = os.urandom(90_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
WRONG = {
    "another": os.urandom(90_000),
    "one byte changed": CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]),
    "short": CONTENT[:-1],
    "long": CONTENT + b"x",
    "absent": b"",
}


def kept(hub: HubProcess) -> set[Path]:
    """Every file that was stored or left."""
    root = hub.settings.layout.root
    return {path for kind in ("blobs", "xorbs", "cache", "tmp") for path in (root / kind).rglob("*") if path.is_file()}


async def action(client: httpx2.AsyncClient, transfers: list[str]) -> dict[str, Any]:
    asked = {"operation": "upload", "transfers": transfers, "objects": [{"oid": SHA256, "size": len(CONTENT)}]}
    told = (await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)).json()
    return dict(told["objects"][0]["actions"]["upload"])


async def is_absent(hub: HubProcess, client: httpx2.AsyncClient, before: set[Path]) -> None:
    """Nothing was kept, and a commit cannot name it."""
    assert kept(hub) == before
    step = b'{"key": "lfsFile", "value": {"path": "x.bin", "algo": "sha256", "oid": "%s"}}' % SHA256.encode()
    body = b'{"key": "header", "value": {"summary": "s"}}\n' + step
    answer = await client.post(f"/api/models/{REPO}/commit/main", content=body)
    assert (answer.status_code, "Not uploaded before the commit: x.bin" in answer.text) == (400, True)


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
async def test_a_wrong_body_is_refused_and_nothing_is_kept(resting: HubProcess, inside: Inside, body: bytes) -> None:
    _, client = inside
    before = kept(resting)
    link = (await action(client, ["basic"]))["href"]
    assert (await client.put(link, content=body)).status_code == 400
    await is_absent(resting, client, before)


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
async def test_wrong_parts_are_refused_and_nothing_is_kept(resting: HubProcess, inside: Inside, body: bytes) -> None:
    _, client = inside
    before = kept(resting)
    told = await action(client, ["multipart"])
    length = int(told["header"].pop("chunk_size"))
    statuses = []
    for number, url in told["header"].items():
        start = (int(number) - 1) * length
        statuses.append((await client.put(url, content=body[start : start + length])).status_code)
    parts = [{"partNumber": int(number), "etag": "x"} for number in told["header"]]
    statuses.append((await client.post(told["href"], json={"parts": parts[:1]})).status_code)
    statuses.append((await client.post(told["href"], json={"parts": parts})).status_code)
    assert statuses[-2:] == [400, 400]
    await is_absent(resting, client, before)


async def test_a_link_is_good_for_what_it_was_made_for_alone(resting: HubProcess, inside: Inside) -> None:
    hub, client = inside
    before = kept(resting)
    link = (await action(client, ["basic"]))["href"]
    address, _, sealed = link.rpartition("/")
    claims = {"repo": 1, "token": 2, "sha256": SHA256, "size": len(CONTENT)}
    forged = {
        "cut": sealed[:-8],
        "changed": sealed[:60] + ("A" if sealed[60] != "A" else "B") + sealed[61:],
        "no base64": "%00!!",
        "empty": "AAAA",
        "another key": Signer(os.urandom(32)).seal("lfs.whole", claims, seconds=60),
        "another purpose": hub.signer.seal("xet", claims, seconds=60),
        "expired": hub.signer.seal("lfs.whole", claims, seconds=-1),
        "no token": hub.signer.seal("lfs.whole", {**claims, "token": 10**6}, seconds=60),
    }
    for why, word in forged.items():
        assert (await client.put(f"{address}/{word}", content=CONTENT)).status_code in (403, 404), why
    assert (await client.put(link.replace("/whole/", "/part/"), content=CONTENT)).status_code == 403
    await is_absent(resting, client, before)
    assert (await client.put(link, content=CONTENT)).status_code == 200
    assert (await client.put(link, content=CONTENT)).status_code == 200, "a client that missed the answer asks again"


async def test_xorbs_and_shards_are_taken_by_their_content_alone(resting: HubProcess, inside: Inside) -> None:
    _, client = inside
    content = content_of(5)
    chunks = [content[:40_000], content[40_000:]]
    body, name = pack_xorb(chunks)
    token = (await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["accessToken"]
    headers = {"authorization": f"Bearer {token}"}
    before = kept(resting)

    async def post(address: str, content: bytes) -> int:
        return (await client.post(f"/_cas/v1/{address}", content=content, headers=headers)).status_code

    xorb = f"xorbs/default/{spelled(name)}"
    for wrong in (b"", body[:-1], body[:50_000] + bytes([body[50_000] ^ 1]) + body[50_001:], body + body):
        assert await post(xorb, wrong) == 400
    assert await post("shards", shard_of(name, chunks, content)) == 400, "its xorb was not sent"
    assert kept(resting) == before
    assert await post(xorb, body) == 200
    other = [content[:40_000], content[40_000:-1] + b"x"]
    for wrong in (shard_of(name, chunks, b"x" * len(content)), shard_of(name, other, content), b"", b"x" * 500):
        assert await post("shards", wrong) == 400
    sha256 = hashlib.sha256(content).hexdigest()
    with pytest.raises(AssertionError, match="Not uploaded"):
        await commit_uploaded(client, "xet.bin", sha256)
    assert await post("shards", shard_of(name, chunks, content)) == 200
    await commit_uploaded(client, "xet.bin", sha256)


async def test_a_reply_about_a_xorb_tells_nothing_of_what_others_sent(resting: HubProcess, inside: Inside) -> None:
    """Who has the bytes learns nothing by sending them of a private repository that has them too."""
    _, client = inside
    body, name = pack_xorb([content_of(6)])
    told = []
    for token, repo in ((resting.writer, REPO), (resting.stranger, "stranger/own")):
        headers = {"authorization": f"Bearer {token}"}
        await client.post("/api/repos/create", json={"name": repo}, headers=headers)
        await client.put(f"/api/models/{repo}/settings", json={"private": True}, headers=headers)
        answer = await client.get(f"/api/models/{repo}/xet-write-token/main", headers=headers)
        cas = {"authorization": f"Bearer {answer.json()['accessToken']}"}
        sent = [await client.post(f"/_cas/v1/xorbs/d/{spelled(name)}", content=body, headers=cas) for _ in range(2)]
        told.append([answer.json() for answer in sent])
    assert told[0] == told[1] == [{"was_inserted": True}, {"was_inserted": False}]


async def test_two_repositories_share_a_blob_and_one_of_them_goes(resting: HubProcess, inside: Inside) -> None:
    _, client = inside
    content = content_of(8)
    sha256 = hashlib.sha256(content).hexdigest()
    await send_whole(client, "shared.bin", content)
    await client.post("/api/repos/create", json={"name": "other", "organization": "team"})
    before = kept(resting)
    step = b'{"key": "lfsFile", "value": {"path": "s.bin", "algo": "sha256", "oid": "%s"}}' % sha256.encode()
    body = b'{"key": "header", "value": {"summary": "s"}}\n' + step
    assert (await client.post("/api/models/team/other/commit/main", content=body)).status_code == 200
    assert kept(resting) == before, "what is known is not stored again"
    gone = await client.request("DELETE", "/api/repos/delete", json={"name": "deeds", "organization": "team"})
    assert gone.status_code == 200
    assert (await client.get("/team/other/resolve/main/s.bin")).content == content
