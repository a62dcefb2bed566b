"""What nobody needs goes; what anybody needs, or is about to name, stays."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx2
import pytest
from hub_inside import DEEDS, REPO, commit_uploaded, content_of, send_whole, send_xet
from hub_process import HubProcess, make_hub
from hub_upkeep import Inside, let_age, opened
from test_commits import lines

from hfbench.actions.registry import find
from hfbench.actions.registry_gc import RegistryGc
from hfbench.errors import UsageError
from hfbench.registry.hub import Hub
from hfbench.registry.upkeep.collecting import collect
from hfbench.registry.upkeep.facts import Swept
from hfbench.registry.upkeep.fsck import check
from hfbench.registry.upkeep.session import require_grace
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.xorbs import pack_xorb

HOUR = 3600.0


async def gc(hub: Hub, *, dry_run: bool = False, unreachable: bool = False) -> Swept:
    return await collect(hub, HOUR, unreachable=unreachable, dry_run=dry_run, tell=lambda *told: None)


async def is_whole(hub: Hub) -> bool:
    return not (await check(hub, quick=False, repair=False, tell=lambda *told: None)).damages


def stored(hub: Hub, kind: str) -> list[Path]:
    return sorted((hub.layout.root / kind).glob("*/*"))


async def delete(client: httpx2.AsyncClient, repo: str = REPO) -> None:
    namespace, _, name = repo.partition("/")
    answer = await client.request("DELETE", "/api/repos/delete", json={"name": name, "organization": namespace})
    assert answer.status_code == 200


async def test_a_deleted_repository_leaves_nothing_behind(any_hub: HubProcess) -> None:
    async with opened(any_hub) as (hub, client):
        for seed, deed in enumerate(DEEDS.values()):
            await deed(client, f"f{seed}", content_of(seed))
        await let_age(hub)
        assert (await gc(hub)).bytes == 0, "everything is named by a commit"
        await delete(client)
        planned = await gc(hub, dry_run=True)
        assert stored(hub, "blobs"), "a dry run removes nothing"
        done = await gc(hub)
        assert (done.blobs, done.xorbs, done.bytes) == (planned.blobs, planned.xorbs, planned.bytes)
        assert done.xorbs == 1
        assert done.trees > 0
        assert not [*stored(hub, "blobs"), *stored(hub, "xorbs"), *stored(hub, "cache")]
        assert await is_whole(hub)
        assert (await gc(hub)).blobs == 0


@pytest.mark.parametrize("deed", [send_whole, send_xet], ids=["whole", "xet"])
async def test_content_of_two_repositories_outlives_one(inside: Inside, deed: object) -> None:
    hub, client = inside
    content = content_of(1)
    await deed(client, "f", content)  # type: ignore[operator]
    await client.post("/api/repos/create", json={"name": "twin", "organization": "team"})
    sha256 = hashlib.sha256(content).hexdigest()
    step = ("lfsFile", {"path": "g", "algo": "sha256", "oid": sha256})
    assert (await client.post("/api/models/team/twin/commit/main", content=lines(step))).status_code == 200
    await let_age(hub)
    await delete(client)
    await gc(hub)
    assert (await client.get("/team/twin/resolve/main/g")).content == content
    await delete(client, "team/twin")
    await gc(hub)
    assert not [*stored(hub, "blobs"), *stored(hub, "xorbs")]


async def test_an_upload_that_runs_keeps_what_it_was_told_is_there(inside: Inside) -> None:
    """The content lies there since long, and no commit names it; the client is told that it need not be sent."""
    hub, client = inside
    content = content_of(2)
    sha256 = hashlib.sha256(content).hexdigest()
    asked = {"operation": "upload", "objects": [{"oid": sha256, "size": len(content)}]}
    batch = f"/{REPO}.git/info/lfs/objects/batch"
    link = (await client.post(batch, json=asked)).json()["objects"][0]["actions"]["upload"]["href"]
    assert (await client.put(link, content=content)).status_code == 200
    await let_age(hub)
    assert "actions" not in (await client.post(batch, json=asked)).json()["objects"][0]
    assert (await gc(hub)).blobs == 0
    await commit_uploaded(client, "f", sha256)
    assert (await client.get(f"/{REPO}/resolve/main/f")).content == content


async def test_an_upload_without_a_commit_goes_when_the_grace_period_is_over(inside: Inside) -> None:
    hub, client = inside
    content = content_of(3)
    asked = {"operation": "upload", "objects": [{"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}]}
    told = (await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)).json()
    await client.put(told["objects"][0]["actions"]["upload"]["href"], content=content)
    assert (await gc(hub)).blobs == 0
    await let_age(hub)
    assert (await gc(hub)).bytes == len(content)


async def test_a_file_that_came_back_between_two_sweeps_is_not_removed(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is gone, and before the file is removed somebody uploads it."""
    from hfbench.registry.upkeep import collecting

    hub, client = inside
    content = content_of(4)
    await send_whole(client, "f", content)
    await client.post("/api/repos/create", json={"name": "twin", "organization": "team"})
    await delete(client)
    await let_age(hub)
    unlink = collecting._unlink_blobs

    async def meanwhile(hub: Hub, hashes: list[str]) -> None:
        asked = {"operation": "upload", "objects": [{"oid": hashlib.sha256(content).hexdigest(), "size": 90_000}]}
        told = (await client.post("/team/twin.git/info/lfs/objects/batch", json=asked)).json()
        link = told["objects"][0]["actions"]["upload"]["href"]
        assert (await client.put(link, content=content)).status_code == 200
        await unlink(hub, hashes)

    monkeypatch.setattr(collecting, "_unlink_blobs", meanwhile)
    await gc(hub)
    step = ("lfsFile", {"path": "g", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert (await client.post("/api/models/team/twin/commit/main", content=lines(step))).status_code == 200
    assert (await client.get("/team/twin/resolve/main/g")).content == content
    assert await is_whole(hub)


async def test_commits_no_branch_leads_to_go_only_when_asked(inside: Inside) -> None:
    hub, client = inside
    assert (await client.post(f"/api/models/{REPO}/branch/side", json={})).status_code == 200
    content = content_of(5)
    asked = {"operation": "upload", "objects": [{"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}]}
    told = (await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)).json()
    await client.put(told["objects"][0]["actions"]["upload"]["href"], content=content)
    step = ("lfsFile", {"path": "f", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    made = (await client.post(f"/api/models/{REPO}/commit/side", content=lines(step))).json()["commitOid"]
    assert (await client.delete(f"/api/models/{REPO}/branch/side")).status_code in (200, 204)
    await let_age(hub, commits_too=True)
    assert (await gc(hub)).blobs == 0
    assert (await client.get(f"/{REPO}/resolve/{made}/f")).content == content
    done = await gc(hub, unreachable=True)
    assert (done.commits, done.blobs) == (1, 1)
    assert (await client.get(f"/{REPO}/resolve/{made}/f")).status_code == 404
    assert (await client.get(f"/api/models/{REPO}")).status_code == 200


async def test_files_that_no_row_names_go(inside: Inside) -> None:
    hub, client = inside
    await send_whole(client, "f", content_of(6))
    stray = hub.layout.blob("ab" * 32)
    stray.write_bytes(b"x" * 1000)
    assert (await gc(hub)).files == 0, "it may be on its way"
    await let_age(hub)
    assert (await gc(hub)).files == 1
    assert not stray.exists()
    assert await is_whole(hub)


def test_a_grace_period_shorter_than_uploads_is_refused_while_the_hub_is_served(resting: HubProcess) -> None:
    import fcntl

    require_grace(resting.settings, 1.0)
    with resting.settings.layout.lock.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="shorter than uploads may take"):
            require_grace(resting.settings, 1.0)
        require_grace(resting.settings, 24 * HOUR)


@pytest.fixture
def simple(memory_folder: Path) -> HubProcess:
    """A hub that keeps whole files."""
    return make_hub(memory_folder, storage="simple")


async def test_where_files_are_kept_whole_xorbs_go_and_files_stay(simple: HubProcess) -> None:
    async with opened(simple) as (hub, client):
        content = content_of(7)
        await send_xet(client, "f", content)
        await let_age(hub)
        done = await gc(hub)
        assert (done.xorbs, done.blobs) == (1, 0)
        assert not stored(hub, "xorbs")
        assert (await client.get(f"/{REPO}/resolve/main/f")).content == content
        await send_xet(client, "g", content)
        assert await is_whole(hub)


async def test_the_address_of_the_store_changes_when_xorbs_are_gone(inside: Inside) -> None:
    """Clients remember by its address which xorbs they sent."""
    hub, client = inside

    async def address() -> str:
        return str((await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["casUrl"])

    first = await address()
    await send_xet(client, "f", content_of(8))
    assert await address() == first
    token = (await client.get(f"/api/models/{REPO}/xet-write-token/main")).json()["accessToken"]
    body, name = pack_xorb([content_of(9)])
    sent = await client.post(
        f"{first}/v1/xorbs/default/{spelled(name)}", content=body, headers={"authorization": f"Bearer {token}"}
    )
    assert sent.status_code == 200
    await let_age(hub)
    assert (await gc(hub)).xorbs == 1
    assert await address() != first


@pytest.mark.parametrize("text", ["0", "0s", "0.0", 0])
def test_a_grace_period_of_nothing_can_be_asked_for(text: object) -> None:
    request = find("registry.gc").build({"grace": text})
    assert isinstance(request, RegistryGc)
    assert request.grace == 0
