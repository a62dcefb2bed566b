"""A disk that is full, for real: a small file system in memory, where mounting is allowed."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, content_of, send_text, send_whole, send_xet
from hub_process import HubProcess, make_hub
from test_access import batch
from test_commits import commit, file, lines

from hfbench.registry.upkeep.fsck import check
from hfbench.registry.upkeep.session import on_hub

MIB = 1 << 20


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("small")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={24 * MIB},mode=700", "hfbench-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def hub(small_disk: Path) -> Iterator[HubProcess]:
    running = make_hub(small_disk)
    running.start()
    with running.client(running.writer) as client:
        namespace, _, name = REPO.partition("/")
        client.post("/api/repos/create", json={"name": name, "organization": namespace})
    yield running
    running.stop()


def fill(folder: Path) -> Path:
    """A file that takes all room there is."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as out:
        for piece in (MIB, 4096):
            try:
                while True:
                    out.write(bytes(piece))
            except OSError:
                continue
    return filler


def test_a_full_disk_is_told_keeps_nothing_and_is_over_once_there_is_room(hub: HubProcess, small_disk: Path) -> None:
    sha256, size = "0" * 64, 30 * MIB
    link = batch(hub, REPO, sha256, size, hub.writer)["actions"]["upload"]["href"]  # type: ignore[index]
    with hub.client() as client:
        answer = client.put(link, content=(bytes(MIB) for _ in range(30)), headers={"content-length": str(size)})
    assert (answer.status_code, "disk is full" in answer.json()["error"]) == (507, True)
    assert not list(hub.settings.layout.drafts.iterdir())

    async def send_all(seed: int) -> None:
        headers = {"authorization": f"Bearer {hub.writer}"}
        async with httpx2.AsyncClient(base_url=hub.url, headers=headers) as client:
            for place, deed in enumerate((send_whole, send_text, send_xet)):
                await deed(client, f"f{seed + place}", content_of(seed + place))

    asyncio.run(send_all(0))
    filler = fill(small_disk)
    many = lines(*(file(f"t{number}", content_of(number)[:60_000].hex().encode()[:60_000]) for number in range(40)))
    assert commit(hub, REPO, many).status_code == 507, "the database cannot grow"
    with pytest.raises(AssertionError, match="507"):
        asyncio.run(send_all(10))
    with hub.client() as client:
        assert client.get("/health").status_code == 200
        assert client.get(f"/{REPO}/resolve/main/f0").content == content_of(0)
    filler.unlink()
    asyncio.run(send_all(10))
    assert commit(hub, REPO, many).status_code == 200
    found = on_hub(hub.settings, lambda inner: check(inner, quick=False, repair=False, tell=lambda *told: None))
    assert not found.damages
