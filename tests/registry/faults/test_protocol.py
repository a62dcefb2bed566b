"""What clients were caught out by elsewhere: sizes, hashes, addresses, and questions this hub does not know."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from hub_inside import REPO, content_of, hub_inside, send_parts, send_text, send_whole, send_xet
from hub_process import HubProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_commits import commit, file, lines

from hfbench.registry.hub import Hub

Inside = tuple[Hub, httpx2.AsyncClient]
ADDRESS = f"/{REPO}/resolve/main"


@pytest.fixture(scope="module")
def kept(served: HubProcess) -> dict[str, bytes]:
    """Files of every size at which something changes, kept in each of the ways there are."""
    texts = {"empty.txt": b"", "one.txt": b"x", "inline.txt": b"i" * 65_536, "file.txt": b"f" * 65_537}
    assert commit(served, REPO, lines(*(file(*each) for each in texts.items()))).status_code == 200
    sent = {"whole.bin": send_whole, "xet.bin": send_xet}

    async def send() -> None:
        headers = {"authorization": f"Bearer {served.writer}"}
        async with httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=30) as client:
            for seed, (name, way) in enumerate(sent.items()):
                await way(client, name, content_of(seed))

    asyncio.run(send())
    return texts | {name: content_of(seed) for seed, name in enumerate(sent)}


@pytest.fixture(scope="module")
def anybody(served: HubProcess) -> Iterator[httpx2.Client]:
    with served.client() as client:
        yield client


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["empty.txt", "one.txt", "inline.txt", "file.txt", "whole.bin", "xet.bin"]),
    start=st.none() | st.integers(0, 100_000),
    end=st.none() | st.integers(0, 100_000),
    gzip=st.booleans(),
)
def test_head_and_get_agree_on_every_size_and_hash(
    kept: dict[str, bytes], anybody: httpx2.Client, name: str, start: int | None, end: int | None, gzip: bool
) -> None:
    content, headers = kept[name], {"accept-encoding": "gzip" if gzip else "identity"}
    if start is not None or end is not None:
        headers["range"] = f"bytes={'' if start is None else start}-{'' if end is None else end}"
    got, head = (anybody.request(method, f"{ADDRESS}/{name}", headers=headers) for method in ("GET", "HEAD"))
    same = ("content-length", "etag", "x-linked-size", "x-repo-commit", "content-range", "accept-ranges")
    assert (got.status_code, *map(got.headers.get, same)) == (head.status_code, *map(head.headers.get, same))
    assert "content-encoding" not in got.headers
    assert len(got.content) == int(got.headers["content-length"])
    git_id = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    wanted = hashlib.sha256(content).hexdigest() if name.endswith(".bin") else git_id
    assert (got.headers["etag"], got.headers["x-linked-size"]) == (f'"{wanted}"', str(len(content)))
    if got.status_code == 206:
        first, last = got.headers["content-range"].removeprefix("bytes ").partition("/")[0].split("-")
        assert got.content == content[int(first) : int(last) + 1]
        assert got.headers["content-range"].endswith(f"/{len(content)}")
    elif got.status_code == 416:
        assert (got.headers["content-range"], got.content) == (f"bytes */{len(content)}", b"")
    else:
        assert (got.status_code, got.content) == (200, content)


async def test_what_nobody_knows_is_ignored(inside: Inside) -> None:
    _, client = inside
    await send_text(client, "x", content_of(1))
    more = "?expand=xetEnabled&expand[]=inferenceProviderMapping&cursor=&limit=5&nothing=1"
    for address in ("/api/models", f"/api/models/{REPO}", f"/api/models/{REPO}/tree/main", f"/api/models/{REPO}/refs"):
        assert (await client.get(address + more)).status_code == 200, address
    assert (await client.get(f"{ADDRESS}/x?download=true&x=y")).status_code == 200


async def test_every_address_that_is_told_is_on_the_public_one(resting: HubProcess) -> None:
    public = "https://hub.lab:8443"
    changed = resting.settings.changed(public_url=public + "/")
    told: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            told.extend(key for key in value if key.startswith("http"))
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)
        elif isinstance(value, str) and "://" in value and not value.startswith("version https://git-lfs"):
            told.append(value)

    async with hub_inside(changed, resting.writer) as (_, client):
        create = {"name": REPO.partition("/")[2], "organization": "team"}
        objects = [{"oid": "5" * 64, "size": 10}, {"oid": "6" * 64, "size": 120_000}]
        batch = {"operation": "upload", "transfers": ["basic", "multipart"], "objects": objects}
        answers = [
            await client.post("/api/repos/create", json={**create, "name": "public"}),
            await client.post("/api/repos/create", json={**create, "name": "public"}),
            await client.post("/api/repos/create", json=create),
            await client.post(f"/api/models/{REPO}/commit/main", content=lines(file("a"), file("b"))),
            await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=batch),
            await client.get(f"/api/models/{REPO}/xet-write-token/main"),
            await client.get("/api/models?limit=1"),
            await client.get(f"/api/models/{REPO}/tree/main?limit=1"),
            await client.get(f"/api/models/{REPO}/commits/main?limit=1"),
        ]
    for answer in answers:
        assert answer.status_code in (200, 409)
        collect(answer.json())
        told += [value for name, value in answer.headers.items() if "://" in value and name != "link"]
        told += [link["url"] for link in answer.links.values()]
    assert len(told) > 10
    assert {"{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in told} == {public}


@pytest.mark.parametrize(
    "address", ["/x/y/z", "/api/spaces/a/b", "/api/models/a/b/discussions", "/team/deeds/blob/main/x"]
)
async def test_nothing_leads_to_another_host(inside: Inside, address: str) -> None:
    answer = await inside[1].get(address)
    assert (answer.status_code in (404, 501), "location" in answer.headers) == (True, False)
    assert answer.headers["x-error-message"]


async def test_every_refusal_has_a_message_and_the_code_clients_know(inside: Inside) -> None:
    _, client = inside
    for address, status, code in (
        ("/api/models/team/none", 404, "RepoNotFound"),
        (f"/api/models/{REPO}/revision/none", 404, "RevisionNotFound"),
        (f"/api/models/{REPO}/tree/main/none", 404, "EntryNotFound"),
        (f"{ADDRESS}/none", 404, "EntryNotFound"),
        (f"/{REPO}/resolve/none/x", 404, "RevisionNotFound"),
        ("/api/spaces", 501, "NotImplemented"),
    ):
        answer = await client.get(address)
        assert (answer.status_code, answer.headers.get("x-error-code")) == (status, code)
        assert answer.json()["error"] == answer.headers["x-error-message"]
        if code == "EntryNotFound":
            assert len(answer.headers["x-repo-commit"]) == 40


async def test_an_upload_in_parts_gives_every_part_a_hash_and_the_file_its_own(inside: Inside) -> None:
    content = content_of(77)
    await send_parts(inside[1], "parts.bin", content)
    answer = await inside[1].get(f"{ADDRESS}/parts.bin")
    assert (answer.content, answer.headers["etag"]) == (content, f'"{hashlib.sha256(content).hexdigest()}"')


def test_curl_resumes_where_it_stopped(served: HubProcess, kept: dict[str, bytes], tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("there is no curl here")
    for name, part in (("whole.bin", 30_000), ("xet.bin", 1), ("file.txt", 65_536)):
        path = tmp_path / name
        path.write_bytes(kept[name][:part])
        command = ["curl", "-sS", "-C", "-", "-o", str(path), f"{served.url}{ADDRESS}/{name}"]
        assert subprocess.run(command, timeout=30).returncode == 0
        assert path.read_bytes() == kept[name]


def test_git_clone_is_refused_with_a_sentence(served: HubProcess, tmp_path: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("there is no git here")
    for address in (REPO, f"{REPO}.git", f"datasets/{REPO}"):
        command = ["git", "clone", "-q", f"{served.url}/{address}", str(tmp_path / "x")]
        environment = {"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment)
        assert done.returncode != 0
        assert "501" in done.stderr
        assert "This hub has no git: download with hf download" in done.stderr


async def test_the_body_of_a_refused_request_need_not_be_json(inside: Inside) -> None:
    answer = await inside[1].post("/api/repos/create", content=b"\xff{")
    assert (answer.status_code, json.loads(answer.content)["error"]) == (400, "The body is no JSON.")
