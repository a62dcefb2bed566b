"""Requests of a few bytes that ask for much: refused by a sentence before the work, and ended when nobody waits."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import struct
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, raw_answer, send_whole, send_xet, shard_of
from hub_process import HubProcess, make_hub
from test_commits import file, lines
from test_front_matter import BOMB

from hfbench.registry.hub import Hub
from hfbench.registry.storage.rebuilding import DamagedError, Recipe
from hfbench.registry.xet.hashes import chunk_hash, file_hash, spelled
from hfbench.registry.xet.shards import LAST_VERSION, TAG, Term
from hfbench.registry.xet.xorbs import MOST_UNPACKED, XorbIndex, pack_xorb

Inside = tuple[Hub, httpx2.AsyncClient]
API = f"/api/models/{REPO}"
BATCH = f"/{REPO}.git/info/lfs/objects/batch"
ZEROS = bytes((16 << 20) - 1)


async def commit(client: httpx2.AsyncClient, *steps: tuple[str, dict[str, object]]) -> None:
    answer = await client.post(f"{API}/commit/main", content=lines(*steps))
    assert answer.status_code == 200, answer.text


async def test_a_card_that_is_a_bomb_is_told_and_leaves_the_page_small(inside: Inside) -> None:
    _, client = inside
    card = f"---\n{BOMB}---\n"
    began = time.monotonic()
    answer = await client.post("/api/validate-yaml", json={"content": card, "repoType": "model"})
    assert (answer.status_code, "aliases" in answer.text) == (400, True)
    await commit(client, file("README.md", card.encode()))
    answer = await client.get(API)
    assert (answer.status_code, len(answer.content) < 5000) == (200, True)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/validate-yaml", b'{"content":' + b"[" * 500 + b"]" * 500 + b"}"),
        (BATCH, b'{"objects":' + b"[" * 100_000),
        (f"{API}/commit/main", b'{"key":"header","value":{"summary":' + b"[" * 50 + b"]" * 50 + b"}}"),
    ],
    ids=["card", "batch", "commit"],
)
async def test_json_that_is_nested_without_end_is_a_bad_request(inside: Inside, path: str, body: bytes) -> None:
    assert (await inside[1].post(path, content=body)).status_code == 400


@pytest.mark.parametrize(
    "config",
    [
        b'{"model_type": "\\ud800", "architectures": ["a\\u0000b"]}',
        b'{"model_type": "x", "quantization_config": ' + b"[" * 400 + b"]" * 400 + b"}",
        b'{"model_type": "x", "quantization_config": NaN, "auto_map": 1e999}',
        b'{"quantization_config": "' + b"x" * 200_000 + b'"}',
        b"[1]",
    ],
    ids=["surrogate", "deep", "nan", "long", "list"],
)
async def test_a_configuration_no_database_keeps_breaks_no_list(inside: Inside, config: bytes) -> None:
    _, client = inside
    await commit(client, file("config.json", config))
    for address in ("/api/models?config=true&full=true&expand=safetensors", API, f"{API}/revision/main"):
        answer = await client.get(address)
        assert (answer.status_code, len(answer.content) < 50_000) == (200, True), answer.text[:300]
    await commit(client, file("config.json", b'{"model_type": "llama"}'))
    assert (await client.get(API)).json()["config"] == {"model_type": "llama"}


async def test_a_repository_that_is_damaged_hides_no_other(inside: Inside) -> None:
    hub, client = inside
    await client.post("/api/repos/create", json={"name": "broken", "organization": "team"})
    await client.post("/api/models/team/broken/commit/main", content=lines(file("deep/x", b"only here")))
    with closing(sqlite3.connect(hub.layout.database)) as database, database:
        tree = database.execute(
            'SELECT "commit".tree FROM "commit" JOIN repo ON repo.id = repo_id WHERE repo.name = ? ORDER BY at DESC',
            ("broken",),
        ).fetchone()[0]
        database.execute("DELETE FROM tree WHERE id = ?", (tree,))
        database.execute("DELETE FROM tree_facts")
    hub.trees._known.clear()
    answer = await client.get("/api/models?full=true&config=true")
    assert answer.status_code == 200
    assert {"team/broken", REPO} <= {each["id"] for each in answer.json()}
    await client.request("DELETE", "/api/repos/delete", json={"name": "broken", "organization": "team"})


def batch(count: int, size: int, **more: Any) -> dict[str, Any]:
    objects = [{"oid": f"{number:064x}", "size": size} for number in range(count)]
    return {"operation": "upload", "transfers": ["basic", "multipart"], "objects": objects, **more}


async def test_a_batch_of_more_parts_than_are_signed_is_refused(inside: Inside) -> None:
    hub, client = inside
    size = 9_000 * hub.settings.part_bytes
    answer = await client.post(BATCH, json=batch(20, size))
    assert (answer.status_code, "180,000 parts" in answer.text) == (413, True)
    answer = await client.post(BATCH, json=batch(1, size))
    assert len(answer.json()["objects"][0]["actions"]["upload"]["header"]) == 9_001


@pytest.mark.parametrize("more", [{"transfers": 5}, {"transfers": {"a": 1}}, {"transfers": "multipart"}])
async def test_transfers_that_are_no_list_are_a_bad_request(inside: Inside, more: dict[str, Any]) -> None:
    assert (await inside[1].post(BATCH, json=batch(1, 5, **more))).status_code == 400


@pytest.mark.parametrize("size", [10**30, -1, True, 1.5])
async def test_a_size_that_no_disk_has_is_a_bad_request(inside: Inside, size: Any) -> None:
    _, client = inside
    assert (await client.post(BATCH, json=batch(1, size))).status_code == 400
    files = {"files": [{"path": "a", "size": size, "sample": ""}]}
    assert (await client.post(f"{API}/preupload/main", json=files)).status_code == 400


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("/api/models?cursor=WzFlOTk5LDFd", "cursor"),  # [1e999,1]
        ("/api/models?cursor=WzEsMTAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwXQ", "cursor"),  # an id of 24 digits
        ("/api/models?search=" + "a%20" * 3000, "too many words"),
        ("/api/models?filter=" + "a," * 2000, "too many words"),
    ],
    ids=["infinite", "long", "words", "tags"],
)
async def test_a_question_no_database_answers_is_a_bad_request(inside: Inside, address: str, why: str) -> None:
    answer = await inside[1].get(address)
    assert (answer.status_code, why in answer.text) == (400, True), answer.text


async def test_more_paths_than_are_looked_up_are_a_bad_request(inside: Inside) -> None:
    answer = await inside[1].post(f"{API}/paths-info/main", content="&".join(f"paths={n}" for n in range(20_001)))
    assert (answer.status_code, "too many paths" in answer.text) == (400, True)


async def test_a_path_with_a_line_break_is_answered_as_any_other(inside: Inside) -> None:
    hub, _ = inside
    status, body = await raw_answer(hub, "GET", b"/team/x%0ay/resolve/main/z")
    assert (status, "error" in json.loads(body)) == (401, True)


def test_a_path_with_a_line_break_reaches_the_hub_through_its_server(served: HubProcess) -> None:
    with served.client() as client:
        answer = client.get("/nobody/x%0ay")
        assert answer.json() == {"error": "There is nothing at this address."}


@pytest.fixture
def small(tmp_path: Path) -> HubProcess:
    """A hub of its own, whose namespaces may hold 50 MiB."""
    return make_hub(tmp_path, default_quota=50 << 20)


async def test_health_tells_of_a_damaged_database(small: HubProcess) -> None:
    async with hub_inside(small.settings, small.writer) as (hub, client):
        assert (await client.get("/health")).status_code == 200
        with closing(sqlite3.connect(hub.layout.database)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with hub.layout.database.open("r+b") as file_:
            file_.seek(4096)
            file_.write(b"\xff" * 4096 * 40)
        await hub.database.engine.dispose()
        answers = [await client.get(address) for address in ("/health", "/api/models", "/health")]
        assert [answer.status_code for answer in answers] == [503] * 3
        assert "database is damaged" in answers[-1].text


async def sent_xorb(client: httpx2.AsyncClient, chunks: list[bytes]) -> tuple[bytes, dict[str, str], httpx2.Response]:
    token = (await client.get(f"{API}/xet-write-token/main")).json()["accessToken"]
    body, name = pack_xorb(chunks)
    headers = {"authorization": f"Bearer {token}"}
    answer = await client.post(f"/_cas/v1/xorbs/default/{spelled(name)}", content=body, headers=headers)
    return name, headers, answer


def repeated(xorb: bytes, chunk: bytes, count: int) -> bytes:
    """The shard of a file that is one chunk again and again."""
    name = file_hash([(chunk_hash(chunk), len(chunk))] * count)
    rows = struct.pack("<32sII8x", name, 1 << 30, count)
    rows += struct.pack("<32sIIII", xorb, 0, len(chunk), 0, 1) * count
    bookend = b"\xff" * 32 + bytes(16)
    return TAG + struct.pack("<QQ", LAST_VERSION, 0) + rows + bytes(32) + bytes(16) + bookend + bookend


async def test_a_shard_that_makes_gigabytes_of_one_chunk_is_refused_unread(inside: Inside) -> None:
    _, client = inside
    xorb, headers, answer = await sent_xorb(client, [ZEROS])
    assert answer.status_code == 200
    began = time.process_time()
    answer = await client.post("/_cas/v1/shards", content=repeated(xorb, ZEROS, 3000), headers=headers)
    assert (answer.status_code, "46.9 GiB" in answer.text) == (413, True)
    assert time.process_time() - began < 1


async def test_a_shard_beyond_the_quota_is_refused_unread(small: HubProcess) -> None:
    async with hub_inside(small.settings, small.writer) as (_, client):
        await client.post("/api/repos/create", json={"name": REPO.partition("/")[2], "organization": "team"})
        xorb, headers, _ = await sent_xorb(client, [ZEROS])
        began = time.process_time()
        answer = await client.post("/_cas/v1/shards", content=repeated(xorb, ZEROS, 60), headers=headers)
        assert (answer.status_code, "do not fit" in answer.text) == (413, True)
        assert time.process_time() - began < 0.5, "a gigabyte was not unpacked for it"


async def test_a_xorb_that_unpacks_to_more_than_any_client_packs_is_refused(inside: Inside) -> None:
    _, _, answer = await sent_xorb(inside[1], [ZEROS] * (MOST_UNPACKED // len(ZEROS) + 1))
    assert (answer.status_code, "MiB of content" in answer.text) == (400, True)


async def test_work_that_nobody_waits_for_any_more_ends(inside: Inside) -> None:
    hub, client = inside
    xorb, _, _ = await sent_xorb(client, [ZEROS])
    index = XorbIndex.unpack(await _index(hub, xorb))
    terms = tuple(Term(xorb, len(ZEROS), 0, 1) for _ in range(600))
    recipe = Recipe("0" * 64, len(ZEROS) * 600, terms, {xorb: index})
    for work in (hub.rebuilder.check(recipe), hub.rebuilder.make(recipe, hub.layout.cached("0" * 64))):
        task = asyncio.create_task(work)
        await asyncio.sleep(0.1)
        began = time.monotonic()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert time.monotonic() - began < 1
    assert not list(hub.layout.drafts.iterdir())
    running = asyncio.create_task(hub.rebuilder.check(recipe))
    await asyncio.sleep(0.1)
    hub.rebuilder.close()
    with pytest.raises(DamagedError, match="given up"):
        await asyncio.wait_for(running, 2)


async def _index(hub: Hub, xorb: bytes) -> bytes:
    from hfbench.registry.database.content import xorb_indexes

    async with hub.database.reading() as connection:
        return (await xorb_indexes(connection, [spelled(xorb)]))[spelled(xorb)]


async def test_a_client_that_leaves_frees_its_place(inside: Inside) -> None:
    hub, client = inside
    xorb, headers, _ = await sent_xorb(client, [ZEROS])
    waiting = [
        asyncio.create_task(_leaving(hub, repeated(xorb, ZEROS, 120), headers["authorization"], 0.1)) for _ in range(6)
    ]
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    began = time.monotonic()
    await send_xet(client, "after.bin", content_of(31))
    assert time.monotonic() - began < 2
    assert not list(hub.layout.drafts.iterdir())


async def _leaving(hub: Hub, body: bytes, authorization: str, seconds: float) -> None:
    """Sends a shard, and leaves after some time."""
    from hfbench.registry.app import Dispatcher

    dispatcher, sent, asked = Dispatcher(), list[Any](), 0
    dispatcher.hub = hub

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked == 1:
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.sleep(seconds)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    told = [(b"authorization", authorization.encode())]
    path = b"/_cas/v1/shards"
    scope = {"type": "http", "method": "POST", "path": path.decode(), "raw_path": path, "headers": told}
    await dispatcher({**scope, "query_string": b""}, receive, send)
    assert sent[0]["status"] == 400


async def test_what_is_known_is_sent_again_at_no_cost(inside: Inside) -> None:
    _, client = inside
    content = content_of(77)
    await send_xet(client, "again.bin", content)
    chunks = [content[start : start + 40_000] for start in range(0, len(content), 40_000)]
    xorb, headers, _ = await sent_xorb(client, chunks)
    answer = await client.post("/_cas/v1/shards", content=shard_of(xorb, chunks, content), headers=headers)
    assert answer.status_code == 200
    await send_whole(client, "whole.bin", content)
    assert hashlib.sha256((await client.get(f"/{REPO}/resolve/main/again.bin")).content).digest() == (
        hashlib.sha256(content).digest()
    )
