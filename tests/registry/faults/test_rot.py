"""A byte that changed on the disk: what was stored otherwise is never sent whole, and mended where it can be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, raw_answer, send_text, send_whole, send_xet
from hub_process import HubProcess
from sqlalchemy import update

from hfbench.registry.database.schema import inline_blobs
from hfbench.registry.hub import Hub
from hfbench.registry.storage import reading
from hfbench.registry.storage.trust import DamagedError

Inside = tuple[Hub, httpx2.AsyncClient]
BYTES = {"range": "bytes=1000-1999"}


def rot(path: Path, place: int = 50_000, *, told: bool = False) -> None:
    """Change one byte; unless told, the file looks as it did before."""
    before = path.stat()
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))
    if not told:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


async def started_again(resting: HubProcess, path: str, headers: dict[str, str]) -> httpx2.Response:
    """The answer of a server that knows nothing of earlier downloads."""
    async with hub_inside(resting.settings, "") as (_, client):
        return await client.get(f"/{REPO}/resolve/main/{path}", headers=headers)


async def noted(pieces: AsyncIterator[bytes], sizes: list[int]) -> AsyncIterator[bytes]:
    """The pieces, with the size of each written down before it is looked at."""
    async for piece in pieces:
        sizes.append(len(piece))
        yield piece


def stored(hub: HubProcess | Hub, content: bytes) -> Path:
    return hub.settings.layout.blob(hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("headers", [{}, BYTES], ids=["whole", "part"])
async def test_a_blob_that_rotted_is_refused_by_a_server_that_starts(
    resting: HubProcess, inside: Inside, headers: dict[str, str]
) -> None:
    content = content_of(10 + len(headers))
    await send_whole(inside[1], f"rotten{len(headers)}", content)
    rot(stored(resting, content))
    answer = await started_again(resting, f"rotten{len(headers)}", headers)
    assert (answer.status_code, "damaged" in answer.headers["x-error-message"]) == (500, True)
    assert "fsck" in answer.json()["error"]


async def test_a_blob_that_was_written_to_is_refused_at_once(resting: HubProcess, inside: Inside) -> None:
    _, client = inside
    content = content_of(20)
    await send_whole(client, "touched", content)
    assert (await client.get(f"/{REPO}/resolve/main/touched")).content == content
    rot(stored(resting, content), told=True)
    address = f"/{REPO}/resolve/main/touched"
    answers = [await client.get(address), await client.get(address, headers=BYTES), await client.head(address)]
    assert [answer.status_code for answer in answers] == [500, 500, 500]


async def test_the_last_piece_of_a_large_rotten_file_does_not_leave(
    resting: HubProcess, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SOON", 10_000)
    content = content_of(30)
    await send_whole(inside[1], "large", content)
    whole = await started_again(resting, "large", {})
    assert whole.content == content, "a sound one is sent while it is hashed"
    rot(stored(resting, content))
    left: list[int] = []
    async with hub_inside(resting.settings, "") as (hub, client):
        async with hub.database.reading() as connection:
            plan = await hub.reader.plan(connection, hashlib.sha256(content).hexdigest())
        plan = await hub.reader.ready(plan, whole=True)
        with pytest.raises(DamagedError):
            assert [piece async for piece in noted(hub.reader.stream(plan, 0, plan.size), left)]
        assert sum(left) < len(content)
        again = await client.get(f"/{REPO}/resolve/main/large")
    assert again.status_code == 500


async def test_a_part_that_cannot_wait_until_all_was_read_says_so(
    resting: HubProcess, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 0.0)
    content = content_of(40)
    await send_whole(inside[1], "patient", content)
    answer = await started_again(resting, "patient", BYTES)
    assert (answer.status_code, answer.content) == (206, content[1000:2000])
    assert answer.headers["x-hf-warning"].startswith("integrity; ")


@pytest.mark.parametrize("headers", [{}, BYTES], ids=["whole", "part"])
async def test_a_rebuilt_file_that_rotted_is_rebuilt(
    resting: HubProcess, inside: Inside, headers: dict[str, str]
) -> None:
    content = content_of(50 + len(headers))
    await send_xet(inside[1], f"cached{len(headers)}", content)
    cached = resting.settings.layout.cached(hashlib.sha256(content).hexdigest())
    rot(cached)
    answer = await started_again(resting, f"cached{len(headers)}", headers)
    assert answer.content == (content[1000:2000] if headers else content)
    if not headers:
        assert cached.read_bytes() == content


@pytest.mark.parametrize("headers", [{}, {"range": "bytes=49000-51000"}], ids=["whole", "part"])
async def test_a_xorb_that_rotted_is_refused(resting: HubProcess, inside: Inside, headers: dict[str, str]) -> None:
    content = content_of(60 + len(headers))
    xorbs = {path for path in (resting.settings.layout.root / "xorbs").rglob("*") if path.is_file()}
    await send_xet(inside[1], f"xorb{len(headers)}", content)
    [xorb] = {path for path in (resting.settings.layout.root / "xorbs").rglob("*") if path.is_file()} - xorbs
    resting.settings.layout.cached(hashlib.sha256(content).hexdigest()).unlink()
    rot(xorb)
    address = f"/{REPO}/resolve/main/xorb{len(headers)}".encode()
    async with hub_inside(resting.settings, "") as (hub, _):
        status, body = await raw_answer(hub, "GET", address, headers=headers)
    if headers:  # the answer had begun: it ends before its length
        assert (status, len(body) < 2001) == (206, True)
    else:
        assert (status, b"damaged" in body) == (500, True)


async def test_a_small_file_that_rotted_in_the_database_is_refused(inside: Inside) -> None:
    hub, client = inside
    content = content_of(70)
    await send_text(client, "small", content)
    small = content[:50].hex().encode()
    async with hub.database.writing() as connection:
        which = inline_blobs.c.sha256 == hashlib.sha256(small).hexdigest()
        await connection.execute(update(inline_blobs).where(which).values(content=small.replace(b"a", b"b")))
    assert (await client.get(f"/{REPO}/resolve/main/small.txt")).status_code == 500
    assert (await client.get(f"/{REPO}/resolve/main/small")).content == content, "the others are as they were"


@pytest.mark.parametrize("place", ["blob", "cached"])
async def test_a_link_among_the_blobs_is_not_followed(
    resting: HubProcess, inside: Inside, place: str, tmp_path: Path
) -> None:
    _, client = inside
    content, outside = content_of(80 + len(place)), tmp_path / "outside"
    outside.write_bytes(b"s" * len(content))
    await (send_whole if place == "blob" else send_xet)(client, f"link{place}", content)
    path: Path = getattr(resting.settings.layout, place)(hashlib.sha256(content).hexdigest())
    path.unlink()
    path.symlink_to(outside)
    answer = await client.get(f"/{REPO}/resolve/main/link{place}")
    if place == "cached":
        assert answer.content == content, "rebuilt in the place of the link"
        assert not path.is_symlink()
    else:
        assert answer.status_code == 500
    assert outside.read_bytes() == b"s" * len(content)


async def test_one_damaged_file_leaves_the_page_of_its_model_readable(resting: HubProcess, inside: Inside) -> None:
    content = content_of(90)
    await send_whole(inside[1], "model.safetensors", content)
    stored(resting, content).unlink()
    async with hub_inside(resting.settings, "") as (_, client):
        told: dict[str, Any] = (await client.get(f"/api/models/{REPO}")).json()
        listed = await client.get("/api/models?full=true")
    assert "model.safetensors" in [each["rfilename"] for each in told["siblings"]]
    assert listed.status_code == 200
