"""kill -9 at every point around rename, commit and reply: what was committed is whole, the rest is swept."""

from __future__ import annotations

import hashlib
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from dying import Forks
from hub_inside import DEEDS, REPO, content_of, hub_inside
from hub_process import HubProcess, make_hub
from test_access import batch, upload
from test_commits import commit, lines

from hfbench.registry.fault_points import VARIABLE
from hfbench.registry.hub import Hub

POINTS = ("rename", "renamed", "synced", "commit", "committed")
FARTHEST = 22
"""More points than any deed passes."""


@dataclass
class Story:
    """A hub that dies again and again, and the seeds of what it was sent."""

    hub: HubProcess
    forks: Forks
    seeds: list[int]

    async def die_and_look(self, deed: str, seed: int, point: str) -> bool:
        """Die within a deed, start again, find all as it was, and do the deed again; whether it died."""
        settings, token = self.hub.settings, self.hub.writer
        died = self.forks.do_and_die(settings, token, deed, seed, point)
        async with hub_inside(settings, token) as (hub, client):
            assert not list(settings.layout.drafts.iterdir()), "what was left half is swept"
            await self.look(hub, client)
            await DEEDS[deed](client, f"f{seed}", content_of(seed))
            self.seeds.append(seed)
            assert len((await client.get(f"/api/models/{REPO}/commits/main?limit=1000")).json()) == len(self.seeds) + 1
        return died

    async def look(self, hub: Hub, client: httpx2.AsyncClient) -> None:
        """Whatever a revision names is there with its size and hash; all that was acknowledged is named."""
        named = {}
        for entry in (await client.get(f"/api/models/{REPO}/tree/main?recursive=true")).json():
            if "lfs" not in entry and not entry["path"].endswith(".txt"):
                entry["lfs"] = {"oid": hashlib.sha256(content_of(int(entry["path"][1:]))).hexdigest()}
            async with hub.database.reading() as connection:
                sha256 = entry["lfs"]["oid"] if "lfs" in entry else ""
                plan = await hub.reader.plan(connection, sha256) if sha256 else None
            if plan is not None:
                content = await hub.reader.read(plan, plan.size + 1)
                assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["size"], sha256)
            named[entry["path"]] = sha256
        assert {f"f{seed}" for seed in self.seeds} <= named.keys()


@pytest.fixture(scope="module")
def story(resting: HubProcess) -> Iterator[Story]:
    forks = Forks()
    yield Story(resting, forks, [])
    forks.close()


@pytest.fixture(autouse=True)
async def _repo(inside: object) -> None:
    """The repository is there."""


@pytest.mark.parametrize("point", POINTS)
async def test_a_hub_killed_at_a_point_loses_nothing_it_acknowledged(story: Story, point: str) -> None:
    seed = 1000 + POINTS.index(point)
    deed = ("whole", "parts", "xet", "text", "whole")[POINTS.index(point)]
    assert await story.die_and_look(deed, seed, point)


async def test_a_hub_killed_anywhere_loses_nothing_it_acknowledged(story: Story) -> None:
    assert await _rounds(story, 10, 2000) >= 5


@pytest.mark.slow
async def test_a_hub_killed_a_hundred_times_loses_nothing_it_acknowledged(story: Story) -> None:
    assert await _rounds(story, 100, 3000) >= 50


async def _rounds(story: Story, count: int, first: int) -> int:
    chosen, died = random.Random(first), 0
    for seed in range(first, first + count):
        deed, place = chosen.choice(sorted(DEEDS)), chosen.randint(1, FARTHEST)
        died += await story.die_and_look(deed, seed, f"*:{place}")
    return died


def test_a_commit_whose_reply_was_lost_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a server and its sockets."""
    hub = make_hub(tmp_path)
    hub.start()
    with hub.client(hub.writer) as client:
        client.post("/api/repos/create", json={"name": "r", "organization": "team"})
    content = os.urandom(300_000)
    sha256 = hashlib.sha256(content).hexdigest()
    link = batch(hub, "team/r", sha256, len(content), hub.writer)["actions"]["upload"]["href"]  # type: ignore[index]
    with hub.client() as client:
        assert client.put(link, content=content).status_code == 200
    hub.stop(signal.SIGKILL)
    monkeypatch.setenv(VARIABLE, "committed")
    hub.start()
    monkeypatch.delenv(VARIABLE)
    body = lines(("lfsFile", {"path": "x.bin", "algo": "sha256", "oid": sha256}))
    with pytest.raises(httpx2.TransportError):
        commit(hub, "team/r", body)
    hub.stop(signal.SIGKILL)
    hub.start()
    try:
        again = commit(hub, "team/r", body)
        with hub.client() as client:
            history = [each["id"] for each in client.get("/api/models/team/r/commits/main").json()]
            assert client.get("/team/r/resolve/main/x.bin").content == content
        assert (len(history), history[0]) == (2, again.json()["commitOid"])
    finally:
        hub.stop()


def test_a_download_goes_on_where_it_was_when_the_hub_died(served: HubProcess) -> None:
    content = os.urandom(3_000_000)
    upload(served, REPO, content)
    step = ("lfsFile", {"path": "go-on.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert commit(served, REPO, lines(step)).status_code == 200
    address, got = f"/{REPO}/resolve/main/go-on.bin", b""
    with served.client() as client, client.stream("GET", address) as answer:
        etag = answer.headers["etag"]
        for piece in answer.iter_raw(100_000):
            got += piece
            if len(got) > 1_000_000:
                break
    served.stop(signal.SIGKILL)
    served.start()
    with served.client() as client:
        rest = client.get(address, headers={"range": f"bytes={len(got)}-", "if-range": etag})
    assert rest.status_code == 206
    assert got + rest.content == content
