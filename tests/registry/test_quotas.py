"""Room in a namespace: files count once, and so does what was sent and is no file yet."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, send_whole, send_xet
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
