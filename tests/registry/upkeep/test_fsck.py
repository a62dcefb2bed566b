"""Damage is named with every file it is at, restored where a whole copy is, and gone once somebody sends the bytes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, content_of, send_text, send_whole, send_xet
from hub_process import HubProcess
from hub_upkeep import Inside, let_age, opened
from sqlalchemy import delete, update

from hfbench.registry.database.schema import inline_blobs, repo_blobs, trees
from hfbench.registry.hub import Hub
from hfbench.registry.upkeep.collecting import collect
from hfbench.registry.upkeep.facts import Checked, Damage
from hfbench.registry.upkeep.fsck import check


async def fsck(hub: Hub, *, repair: bool = False, quick: bool = False) -> Checked:
    return await check(hub, quick=quick, repair=repair, tell=lambda *told: None)


def rot(path: Path, place: int = 50_000) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def lost(found: Checked) -> list[Damage]:
    return [each for each in found.damages if each.lost]


def places(damages: Sequence[Damage]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {(each.repo, each.path, each.commit, each.refs) for damage in damages for each in damage.places}


async def get(client: httpx2.AsyncClient, path: str, revision: str = "main") -> httpx2.Response:
    return await client.get(f"/{REPO}/resolve/{revision}/{path}")


async def test_a_whole_hub_is_clean(any_hub: HubProcess) -> None:
    async with opened(any_hub) as (hub, client):
        for seed, deed in enumerate((send_whole, send_text, send_xet)):
            await deed(client, f"d/f{seed}", content_of(seed))
        found = await fsck(hub)
        assert (found.damages, found.repos, found.commits, found.blobs, found.xorbs) == ((), 1, 4, 4, 1)
        assert found.bytes_read > 3 * 90_000


async def test_a_rotten_blob_is_named_and_mended_by_sending_it_again(inside: Inside) -> None:
    hub, client = inside
    content = content_of(1)
    first = await send_whole(client, "a/f", content)
    second = await send_whole(client, "b", content)
    rot(hub.layout.blob(hashlib.sha256(content).hexdigest()))
    assert not (await fsck(hub, quick=True)).damages, "it has the right size"
    found = await fsck(hub)
    assert places(found.damages) == {(REPO, "a/f", second, ("main",)), (REPO, "b", second, ("main",))}
    assert first != second
    [damage] = lost(await fsck(hub, repair=True))
    assert "lost" in damage.mended
    assert (await get(client, "b")).status_code == 500
    assert len(list((hub.layout.root / "damaged").iterdir())) == 1
    await send_whole(client, "b", content)
    assert (await get(client, "a/f")).content == content
    assert not (await fsck(hub)).damages


@pytest.mark.parametrize("cached", [True, False])
async def test_a_rotten_xorb_is_restored_from_the_cache_or_by_sending_it_again(inside: Inside, cached: bool) -> None:
    hub, client = inside
    content = content_of(2)
    commit = await send_xet(client, "f", content)
    [xorb] = (hub.layout.root / "xorbs").glob("*/*")
    rot(xorb)
    if not cached:
        hub.layout.cached(hashlib.sha256(content).hexdigest()).unlink()
    assert places(lost(await fsck(hub))) == {(REPO, "f", commit, ("main",))}
    assert len(lost(await fsck(hub, repair=True))) == (0 if cached else 1)
    if not cached:
        assert (await get(client, "f")).status_code == 500
        await send_xet(client, "f", content)
    assert (await get(client, "f")).content == content
    assert not lost(await fsck(hub))
    assert not lost(await fsck(hub, repair=True))


async def test_a_rotten_file_in_the_cache_is_removed(inside: Inside) -> None:
    hub, client = inside
    content = content_of(3)
    await send_xet(client, "f", content)
    rot(hub.layout.cached(hashlib.sha256(content).hexdigest()))
    [damage] = (await fsck(hub, repair=True)).damages
    assert (damage.what, damage.lost) == ("cache", False)
    assert not (await fsck(hub)).damages
    assert (await get(client, "f")).content == content


async def test_rot_in_the_database_is_found(inside: Inside) -> None:
    hub, client = inside
    await send_text(client, "f", content_of(4))
    commit = await send_text(client, "d/g", content_of(5))
    small = content_of(5)[:50].hex().encode()
    async with hub.database.writing() as connection:
        which = inline_blobs.c.sha256 == hashlib.sha256(small).hexdigest()
        await connection.execute(update(inline_blobs).where(which).values(content=b"other"))
        await connection.execute(delete(repo_blobs))
    found = await fsck(hub)
    assert places(lost(found)) == {(REPO, "d/g.txt", commit, ("main",))}
    assert [each.what for each in found.damages] == ["blob", "hold"]
    assert [each.what for each in (await fsck(hub, repair=True)).damages if not each.mended] == []
    await send_text(client, "d/g", content_of(5))
    assert not (await fsck(hub)).damages
    async with hub.database.writing() as connection:
        await connection.execute(delete(trees))
    wrong = (await fsck(hub)).damages
    assert {each.what for each in wrong} == {"tree"}
    assert any(place.path == "/" for each in wrong for place in each.places)


async def test_a_blob_that_another_repository_needs_is_not_swept_when_its_hold_is_gone(inside: Inside) -> None:
    hub, client = inside
    content = content_of(6)
    await send_whole(client, "f", content)
    async with hub.database.writing() as connection:
        await connection.execute(delete(repo_blobs))
    await let_age(hub)
    assert (await collect(hub, 3600, unreachable=True, dry_run=False, tell=lambda *told: None)).blobs == 0
    assert (await get(client, "f")).content == content
    assert not (await fsck(hub)).damages, "sweeping noted the hold again"


async def test_an_older_database_serves_no_wrong_bytes(resting: HubProcess) -> None:
    """What came after it is for nothing; what was swept after it is missed, and told."""
    layout, swept, later = resting.settings.layout, content_of(7), content_of(8)
    async with opened(resting) as (_, client):
        gone = await send_whole(client, "old", swept)
        await client.post(f"/api/models/{REPO}/tag/main", json={"tag": "before"})
    with closing(_checkpointed(layout.database)):
        shutil.copyfile(layout.database, layout.root / "older")
    async with opened(resting) as (hub, client):
        namespace, _, name = REPO.partition("/")
        await client.request("DELETE", "/api/repos/delete", json={"name": name, "organization": namespace})
        await let_age(hub)
        await collect(hub, 3600, unreachable=False, dry_run=False, tell=lambda *told: None)
        await client.post("/api/repos/create", json={"name": name, "organization": namespace})
        await send_whole(client, "new", later)
        await let_age(hub)
    with closing(_checkpointed(layout.database)):
        shutil.copyfile(layout.root / "older", layout.database)
    async with opened(resting) as (hub, client):
        answer = await get(client, "old")
        assert (answer.status_code, swept in answer.content) == (500, False)
        assert (await get(client, "new")).status_code == 404
        found = await fsck(hub)
        assert places(lost(found)) == {(REPO, "old", gone, ("main", "before"))}
        assert (found.orphans, found.orphan_bytes) == (1, len(later))
        await fsck(hub, repair=True)
        await send_whole(client, "old", swept)
        assert (await get(client, "old", "before")).content == swept
        assert not (await fsck(hub)).damages


def _checkpointed(database: Path) -> object:
    """A connection after which everything is in the one file."""
    import sqlite3

    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return connection
