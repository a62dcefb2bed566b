"""A namespace that is full is told so before its bytes move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
from hub_inside import REPO, content_of, hub_inside, send_whole
from hub_process import HubProcess

from hfbench.registry.hub import Hub

Inside = tuple[Hub, httpx2.AsyncClient]
LIMIT = 200_000


async def test_what_does_not_fit_is_refused_before_it_is_sent(resting: HubProcess, inside: Inside) -> None:
    await send_whole(inside[1], "first.bin", content_of(1))
    asked: dict[str, Any] = {"operation": "upload", "objects": [{"oid": "7" * 64, "size": LIMIT}]}
    files = {"files": [{"path": "w.bin", "size": LIMIT, "sample": ""}]}
    read = False

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read = True
        yield bytes(LIMIT)

    async with hub_inside(resting.settings.changed(default_quota=LIMIT), resting.writer) as (_, client):
        answers = [
            await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked),
            await client.post(f"/api/models/{REPO}/preupload/main", json=files),
        ]
        token = (await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["accessToken"]
        headers = {"authorization": f"Bearer {token}", "content-length": str(LIMIT)}
        answers.append(await client.post(f"/_cas/v1/xorbs/default/{'7' * 64}", content=body(), headers=headers))
        fits = await send_whole(client, "second.bin", content_of(2))
    assert [answer.status_code for answer in answers] == [413] * 3
    assert all("of the" in answer.json()["error"] and "team" in answer.json()["error"] for answer in answers)
    assert not read, "nothing was taken of the body"
    assert len(fits) == 40
