"""A disk that is full: the client is told so, nothing half stays, and all is well once there is room."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, content_of, send_parts, send_text, send_whole, send_xet
from hub_process import HubProcess, make_hub
from hub_upkeep import opened
from test_access import batch
from test_commits import commit, file, lines

from hfbench.registry.upkeep.fsck import check
from hfbench.registry.upkeep.session import on_hub

MIB = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub on a file system of 48 MiB."""
    folder = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "none", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    hub = make_hub(folder, part_bytes=4 * MIB, multipart_bytes=40 * MIB)
    hub.start()
    try:
        with hub.client(hub.writer) as client:
            client.post("/api/repos/create", json={"name": REPO.partition("/")[2], "organization": "team"})
        yield hub
    finally:
        hub.stop()
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[HubProcess]:
    """A hub on a file system of 80 MiB, of which no server runs."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=80m,mode=700", "none", str(tmp_path)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield make_hub(tmp_path)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.fixture
def filler(small: HubProcess) -> Iterator[Callable[[int], None]]:
    """Takes all room but so many bytes."""
    path = small.settings.layout.root.parent / "filler"

    def fill(left: int) -> None:
        room = os.statvfs(path.parent)
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left)

    yield fill
    path.unlink(missing_ok=True)


def put(hub: HubProcess, content: bytes) -> httpx2.Response:
    told = batch(hub, REPO, hashlib.sha256(content).hexdigest(), len(content), hub.writer)
    with hub.client() as client:
        return client.put(told["actions"]["upload"]["href"], content=content)  # type: ignore[index]


def history(hub: HubProcess) -> int:
    with hub.client() as client:
        return len(client.get(f"/api/models/{REPO}/commits/main").json())


def is_told(answer: httpx2.Response) -> bool:
    return answer.status_code == 507 and "disk is full" in answer.headers["x-error-message"]


def test_an_upload_that_does_not_fit_is_told_and_leaves_nothing(
    small: HubProcess, filler: Callable[[int], None]
) -> None:
    content = os.urandom(12 * MIB)
    filler(4 * MIB)
    assert is_told(put(small, content))
    layout = small.settings.layout
    assert not list(layout.drafts.iterdir())
    assert not layout.blob(hashlib.sha256(content).hexdigest()).exists()
    with small.client() as client:
        assert client.get(f"/api/models/{REPO}").status_code == 200, "reading goes on"
    (layout.root.parent / "filler").unlink()
    assert put(small, content).status_code == 200
    step = ("lfsFile", {"path": "x.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert commit(small, REPO, lines(step)).status_code == 200
    with small.client() as client:
        assert client.get(f"/{REPO}/resolve/main/x.bin").content == content


def test_a_commit_that_does_not_fit_is_told_and_is_none(small: HubProcess, filler: Callable[[int], None]) -> None:
    before = history(small)
    filler(256 * 1024)
    texts = [file(f"{n}.txt", os.urandom(30_000).hex().encode()) for n in range(10)]
    answers = [commit(small, REPO, lines(*texts)), commit(small, REPO, lines(file("big", os.urandom(3 * MIB))))]
    assert [is_told(answer) for answer in answers] == [True, True], [answer.text for answer in answers]
    (small.settings.layout.root.parent / "filler").unlink()
    assert history(small) == before
    assert commit(small, REPO, lines(*texts)).status_code == 200
    assert history(small) == before + 1


def test_every_way_of_sending_is_refused_and_works_again_and_fsck_finds_nothing(
    small: HubProcess, filler: Callable[[int], None]
) -> None:
    async def send_all(seed: int) -> None:
        headers = {"authorization": f"Bearer {small.writer}"}
        async with httpx2.AsyncClient(base_url=small.url, headers=headers) as client:
            for place, deed in enumerate((send_whole, send_text, send_xet)):
                await deed(client, f"f{seed + place}", content_of(seed + place))

    asyncio.run(send_all(0))
    filler(0)
    with pytest.raises(AssertionError, match="507"):
        asyncio.run(send_all(10))
    with small.client() as client:
        assert client.get("/health").status_code == 200
        assert client.get(f"/{REPO}/resolve/main/f0").content == content_of(0), "reading goes on"
    (small.settings.layout.root.parent / "filler").unlink()
    asyncio.run(send_all(10))
    found = on_hub(small.settings, lambda inner: check(inner, quick=False, repair=False, tell=lambda *told: None))
    assert not found.damages


def test_stock_clients_are_told_of_it(small: HubProcess, filler: Callable[[int], None], tmp_path: Path) -> None:
    from huggingface_hub import HfApi, constants

    path = tmp_path / "w.bin"
    path.write_bytes(os.urandom(6 * MIB))
    filler(2 * MIB)
    api = HfApi(endpoint=small.url, token=small.writer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr("time.sleep", lambda _seconds: None)  # it tries five times
        with pytest.raises(RuntimeError, match=r"w\.bin") as told:
            api.upload_file(repo_id=REPO, path_or_fileobj=path, path_in_repo="w.bin")
    assert "disk is full" in str(told.value.__cause__)
    (small.settings.layout.root.parent / "filler").unlink()
    api.upload_file(repo_id=REPO, path_or_fileobj=path, path_in_repo="w.bin")
    assert api.file_exists(REPO, "w.bin")


async def test_a_file_of_more_than_half_of_the_disk_is_taken_without_a_copy_in_the_cache(crowded: HubProcess) -> None:
    content = os.urandom(45 * MIB)
    async with opened(crowded) as (hub, client):
        await send_xet(client, "large.bin", content)
        assert not hub.layout.cached(hashlib.sha256(content).hexdigest()).exists()
        assert (await client.get(f"/{REPO}/resolve/main/large.bin")).content == content


async def test_files_of_the_cache_give_way_to_uploads(crowded: HubProcess) -> None:
    async with opened(crowded) as (hub, client):
        first, second = os.urandom(24 * MIB), os.urandom(40 * MIB)
        await send_xet(client, "first.bin", first)
        cached = hub.layout.cached(hashlib.sha256(first).hexdigest())
        assert cached.exists()
        long_ago = time.time() - 3600
        os.utime(cached, (long_ago, long_ago))
        await send_whole(client, "second.bin", second)
        assert not cached.exists()
        for name, content in (("first.bin", first), ("second.bin", second)):
            assert (await client.get(f"/{REPO}/resolve/main/{name}")).content == content


async def test_nothing_of_an_upload_in_parts_stays_where_the_disk_is_full(crowded: HubProcess) -> None:
    settings = crowded.settings.changed(multipart_bytes=MIB, part_bytes=50 * MIB)
    async with opened(replace(crowded, settings=settings)) as (hub, client):
        with pytest.raises(AssertionError, match="507"):
            await send_parts(client, "parts.bin", os.urandom(95 * MIB))
        assert [list(folder.iterdir()) for folder in (hub.layout.uploads, hub.layout.drafts)] == [[], []]
