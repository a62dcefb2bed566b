"""Room in a namespace: files count once, and so does what was sent and is no file yet."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, send_text, send_whole, send_xet
from hub_process import HubProcess, make_hub
from hub_upkeep import let_age

from hfbench.registry.upkeep.collecting import collect
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.xorbs import pack_xorb


async def send_xorb(client: httpx2.AsyncClient, seed: int) -> int:
    told = (await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()
    body, name = pack_xorb([content_of(seed)])
    headers = {"authorization": f"Bearer {told['accessToken']}"}
    answer = await client.post(f"/_cas/v1/xorbs/default/{spelled(name)}", content=body, headers=headers)
    return int(answer.status_code)


@pytest.fixture
def small(tmp_path: Path) -> HubProcess:
    """A hub whose namespaces have room for less than three files."""
    return make_hub(tmp_path, default_quota=250_000)


async def test_xorbs_that_no_file_is_made_of_take_room_until_they_are_swept(small: HubProcess) -> None:
    async with hub_inside(small.settings, small.writer) as (hub, client):
        namespace, _, name = REPO.partition("/")
        await client.post("/api/repos/create", json={"name": name, "organization": namespace})
        assert [await send_xorb(client, seed) for seed in range(3)] == [200, 200, 413]
        await let_age(hub)
        await collect(hub, 3600, unreachable=False, dry_run=False, tell=lambda *told: None)
        await send_xet(client, "a", content_of(5))
        await send_whole(client, "b", content_of(6))
        assert await send_xorb(client, 7) == 413, "the file counts as the file it is, its xorb not again"
        assert (await client.post(f"/api/models/{REPO}/preupload/main", json={"files": [
            {"path": "c", "size": 60_000, "sample": ""}
        ]})).status_code == 200  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def limited(request: pytest.FixtureRequest, tmp_path: Path, new_database: Callable[[], str]) -> HubProcess:
    """A hub whose namespaces have room for less than three files, on each database in turn."""
    database = new_database() if request.param == "postgresql" else ""
    return make_hub(tmp_path, database, default_quota=250_000)


@pytest.fixture
async def full_soon(limited: HubProcess) -> AsyncIterator[httpx2.AsyncClient]:
    """Its writer."""
    async with hub_inside(limited.settings, limited.writer) as (_, client):
        for name in (REPO, "team/other"):
            await client.post("/api/repos/create", json={"name": name.partition("/")[2], "organization": "team"})
        yield client


async def batch(client: httpx2.AsyncClient, *contents: bytes, repo: str = REPO) -> httpx2.Response:
    told = [{"oid": hashlib.sha256(each).hexdigest(), "size": len(each)} for each in contents]
    asked = {"operation": "upload", "transfers": ["basic"], "objects": told}
    return await client.post(f"/{repo}.git/info/lfs/objects/batch", json=asked)


async def preupload(client: httpx2.AsyncClient, path: str, size: int) -> int:
    asked = {"files": [{"path": path, "size": size, "sample": ""}]}
    return (await client.post(f"/api/models/{REPO}/preupload/main", json=asked)).status_code


async def test_a_file_that_may_be_unchanged_is_not_counted_again(full_soon: httpx2.AsyncClient) -> None:
    await send_whole(full_soon, "a.bin", content_of(1))
    await send_whole(full_soon, "b.bin", content_of(2))
    size = len(content_of(1))
    assert await preupload(full_soon, "a.bin", size) == 200
    assert await preupload(full_soon, "a.bin", size + 1) == 413
    assert await preupload(full_soon, "c.bin", size) == 413


async def test_uploads_that_begin_at_once_share_the_room_there_is(full_soon: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(batch(full_soon, content_of(seed)) for seed in range(6)))
    begun = [answer for answer in answers if answer.status_code == 200]
    assert [len(begun), len(answers) - len(begun)] == [2, 4]
    assert "were promised" in next(answer.text for answer in answers if answer.status_code == 413)
    links = [answer.json()["objects"][0] for answer in begun]
    kept = {each["oid"]: each["actions"]["upload"]["href"] for each in links}
    for content in map(content_of, range(6)):
        if link := kept.get(hashlib.sha256(content).hexdigest()):
            assert (await full_soon.put(link, content=content)).status_code == 200
            assert (await batch(full_soon, content)).status_code == 200, "what arrived is asked for again at no cost"


async def test_an_upload_that_is_asked_for_again_is_promised_room_once(full_soon: httpx2.AsyncClient) -> None:
    for repo in (REPO, REPO, "team/other", REPO):
        assert (await batch(full_soon, content_of(1), content_of(2), repo=repo)).status_code == 200
    assert (await batch(full_soon, content_of(3))).status_code == 413


async def test_room_is_asked_for_again_by_whatever_was_not_asked_before(full_soon: httpx2.AsyncClient) -> None:
    begun = await batch(full_soon, content_of(1), content_of(2))
    assert begun.status_code == 200
    with pytest.raises(AssertionError, match="413"):
        await send_text(full_soon, "c.txt", content_of(3))
    assert (await full_soon.get(f"/{REPO}/resolve/main/c.txt")).status_code == 404
