"""Hubs within this process, without sockets, on both databases."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hub_process import HubProcess, make_hub
from hub_upkeep import Inside, opened

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a folder: hubs are many here and write durably."""
    base = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=base, prefix="hfbench-upkeep-") as folder:
        yield Path(folder)


@pytest.fixture
def resting(memory_folder: Path) -> HubProcess:
    """A hub with its people, of which no server runs."""
    return make_hub(memory_folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_hub(request: pytest.FixtureRequest, memory_folder: Path) -> HubProcess:
    """The same on each database in turn."""
    if request.param == "sqlite":
        return make_hub(memory_folder)
    return make_hub(memory_folder, request.getfixturevalue("new_database")())


@pytest.fixture
async def inside(resting: HubProcess) -> AsyncIterator[Inside]:
    async with opened(resting) as found:
        yield found
