"""Hubs of the fault tests: in memory where there is such a folder, because they are many and write durably."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, hub_inside
from hub_process import HubProcess, make_hub

from hfbench.registry.hub import Hub

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A killed process leaves to the system what it wrote, on any file system."""
    there = os.access(SHARED_MEMORY, os.W_OK)
    base = SHARED_MEMORY if there else tmp_path_factory.mktemp("hub")
    with tempfile.TemporaryDirectory(dir=base, prefix="hfbench-fault-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def resting(memory_folder: Path) -> HubProcess:
    """A hub with its people and a repository, of which no server runs."""
    return make_hub(memory_folder / "resting", multipart_bytes=60_000, part_bytes=50_000)


@pytest.fixture
async def inside(resting: HubProcess) -> AsyncIterator[tuple[Hub, httpx2.AsyncClient]]:
    """That hub within this process, as a server finds it that starts, with a client of its writer."""
    async with hub_inside(resting.settings, resting.writer) as (hub, client):
        await client.post("/api/repos/create", json={"name": REPO.partition("/")[2], "organization": "team"})
        yield hub, client


@pytest.fixture(scope="module")
def served(memory_folder: Path) -> Iterator[HubProcess]:
    """A hub with a server of its own, which tests may kill and start again."""
    hub = make_hub(memory_folder / "served", slow_seconds=2)
    hub.start()
    with hub.client(hub.writer) as client:
        client.post("/api/repos/create", json={"name": REPO.partition("/")[2], "organization": "team"})
    yield hub
    hub.stop()
