"""Files that arrive in parts: kept when they make what was announced, and out of reach from then on."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hfbench.registry.errors import BadRequest, Conflict
from hfbench.registry.storage.blobs import complete_parts, receive_part
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.sweeping import make_folders
from hfbench.registry.storage.threads import in_a_thread

WHOLE = os.urandom(10_000)
SHA256 = hashlib.sha256(WHOLE).hexdigest()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "hub")
    make_folders(made)
    return made


async def body(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_parts_in_any_order_make_the_file(layout: Layout) -> None:
    path = layout.uploads / "x"
    await receive_part(layout, path, body(WHOLE[6000:]), 6000, 4000)
    await receive_part(layout, path, body(WHOLE[:6000]), 0, 6000)
    complete_parts(layout, path, SHA256, len(WHOLE))
    assert layout.blob(SHA256).read_bytes() == WHOLE
    complete_parts(layout, path, SHA256, len(WHOLE))  # asked again, because the reply was lost


@pytest.mark.parametrize("part", [WHOLE[:5000], b"x" * 10_000], ids=["short", "other"])
async def test_parts_of_another_file_are_refused_and_nothing_is_kept(layout: Layout, part: bytes) -> None:
    path = layout.uploads / "x"
    await receive_part(layout, path, body(part), 0, len(part))
    with pytest.raises(BadRequest, match="do not make the file"):
        complete_parts(layout, path, SHA256, len(WHOLE))
    assert not layout.blob(SHA256).exists()
    assert not path.exists()


async def test_nobody_writes_into_a_file_that_is_complete(layout: Layout) -> None:
    path, begun, rest = layout.uploads / "x", asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await rest.wait()
        yield b"x" * len(WHOLE)

    await receive_part(layout, path, body(WHOLE), 0, len(WHOLE))
    late = asyncio.create_task(receive_part(layout, path, slow(), 0, len(WHOLE)))
    await begun.wait()
    with pytest.raises(Conflict):
        complete_parts(layout, path, SHA256, len(WHOLE))
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    complete_parts(layout, path, SHA256, len(WHOLE))
    assert layout.blob(SHA256).read_bytes() == WHOLE


async def test_a_cancelled_request_waits_for_its_thread() -> None:
    steps: list[str] = []
    begun = threading.Event()

    def work() -> None:
        begun.set()
        time.sleep(0.05)
        steps.append("written")

    async def request() -> None:
        try:
            await in_a_thread(work)
        finally:
            steps.append("closed")

    task = asyncio.create_task(request())
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert steps == ["written", "closed"]
