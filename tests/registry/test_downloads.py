"""Files handed out: ranges, conditions, headers, and rebuilt files that were turned out of the cache."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_process import HubProcess
from test_commits import commit, file, lines

NewRepo = Callable[..., str]
CONTENT = bytes(range(256)) * 4


@pytest.fixture(scope="module")
def address(sqlite_hub: HubProcess) -> str:
    with sqlite_hub.client(sqlite_hub.writer) as client:
        client.post("/api/repos/create", json={"name": "files", "organization": "team"})
    assert commit(sqlite_hub, "team/files", lines(file("x.txt", CONTENT), file("none"))).status_code == 200
    return "/team/files/resolve/main/x.txt"


@pytest.mark.parametrize(
    ("header", "status", "start", "end"),
    [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=1000-", 206, 1000, 1024),
        ("bytes=-5", 206, 1019, 1024),
        ("bytes=0-99999", 206, 0, 1024),
        ("bytes=1024-", 416, 0, 0),
        ("bytes=9-5", 200, 0, 1024),
        ("bytes=0-1,5-6", 200, 0, 1024),
        ("lines=0-1", 200, 0, 1024),
        ("", 200, 0, 1024),
    ],
)
def test_a_range_is_what_was_asked_for(
    sqlite_hub: HubProcess, address: str, header: str, status: int, start: int, end: int
) -> None:
    with sqlite_hub.client() as client:
        got = client.get(address, headers={"range": header} if header else {})
        head = client.head(address, headers={"range": header} if header else {})
    assert (got.status_code, got.content) == (status, CONTENT[start:end])
    assert (head.status_code, head.headers["content-length"]) == (status, str(end - start))
    if status == 206:
        assert got.headers["content-range"] == f"bytes {start}-{end - 1}/1024"
    if status == 416:
        assert got.headers["content-range"] == "bytes */1024"


def test_every_answer_tells_commit_hash_and_size(sqlite_hub: HubProcess, address: str) -> None:
    git_id = hashlib.sha1(b"blob 1024\0" + CONTENT).hexdigest()
    with sqlite_hub.client() as client:
        for answer in (client.head(address), client.get(address), client.get(address, headers={"range": "bytes=0-0"})):
            assert answer.headers["etag"] == f'"{git_id}"'
            assert len(answer.headers["x-repo-commit"]) == 40
            assert answer.headers["x-linked-size"] == "1024"
        known = client.get(address, headers={"if-none-match": f'W/"other", "{git_id}"'})
        absent = client.get("/team/files/resolve/main/none.txt")
    assert (known.status_code, known.content) == (304, b"")
    assert (absent.status_code, absent.headers["x-error-code"]) == (404, "EntryNotFound")
    assert len(absent.headers["x-repo-commit"]) == 40


@pytest.mark.parametrize("path", ["..%2f..%2fregistry.toml", "%2e%2e/x", "a/..%2f..", "%00", ".git%2fconfig", "%5c"])
def test_an_encoded_way_out_is_not_found(sqlite_hub: HubProcess, address: str, path: str) -> None:
    with sqlite_hub.client() as client:
        answer = client.get(f"/team/files/resolve/main/{path}")
    assert answer.status_code == 404


def test_a_rebuilt_file_is_the_same_after_the_cache_lost_it(
    sqlite_hub: HubProcess, new_repo: NewRepo, tmp_path: Path
) -> None:
    from huggingface_hub import HfApi

    content = random.Random(1).randbytes(3 << 20)
    repo = new_repo(sqlite_hub)
    api: Any = HfApi(endpoint=sqlite_hub.url, token=sqlite_hub.writer)
    (tmp_path / "w.bin").write_bytes(content)
    api.upload_file(repo_id=repo, path_or_fileobj=tmp_path / "w.bin", path_in_repo="w.bin")
    cached = sqlite_hub.settings.layout.cached(hashlib.sha256(content).hexdigest())
    with sqlite_hub.client() as client:
        for header in ("bytes=1000000-2000000", "bytes=3145727-", ""):
            cached.unlink(missing_ok=True)
            answer = client.get(f"/{repo}/resolve/main/w.bin", headers={"range": header} if header else {})
            wanted = {"": content, "bytes=3145727-": content[-1:]}.get(header, content[1000000:2000001])
            assert answer.content == wanted
    assert cached.read_bytes() == content, "a whole download fills the cache again"


def test_damaged_content_is_never_served_to_its_end(sqlite_hub: HubProcess, new_repo: NewRepo, tmp_path: Path) -> None:
    from huggingface_hub import HfApi

    content = random.Random(2).randbytes(1 << 20)
    repo = new_repo(sqlite_hub)
    api: Any = HfApi(endpoint=sqlite_hub.url, token=sqlite_hub.writer)
    (tmp_path / "w.bin").write_bytes(content)
    api.upload_file(repo_id=repo, path_or_fileobj=tmp_path / "w.bin", path_in_repo="w.bin")
    layout = sqlite_hub.settings.layout
    layout.cached(hashlib.sha256(content).hexdigest()).unlink()
    newest = max((layout.root / "xorbs").rglob("*"), key=lambda path: (path.is_file(), path.stat().st_mtime_ns))
    newest.chmod(0o600)
    with newest.open("r+b") as damaged:
        damaged.seek(500_000)
        byte = damaged.read(1)
        damaged.seek(500_000)
        damaged.write(bytes([byte[0] ^ 1]))
    with sqlite_hub.client() as client:
        answer = client.get(f"/{repo}/resolve/main/w.bin")
    assert answer.status_code == 500
    assert "damaged" in answer.headers["x-error-message"]
