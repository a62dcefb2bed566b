"""Commits: all or nothing, in a line, repeated without harm, refused with reasons."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from hub_process import HubProcess

NewRepo = Callable[..., str]


def lines(*steps: tuple[str, dict[str, object]], **head: object) -> bytes:
    """The body of a commit."""
    told = [("header", {"summary": "s", **head}), *steps]
    return b"\n".join(json.dumps({"key": key, "value": value}).encode() for key, value in told)


def file(path: str, content: bytes = b"x") -> tuple[str, dict[str, object]]:
    """A step that puts a file."""
    return "file", {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}


def commit(hub: HubProcess, repo: str, body: bytes, token: str = "") -> httpx2.Response:
    """Send a commit to main, as the writer unless another is given."""
    with hub.client(token or hub.writer) as client:
        return client.post(f"/api/models/{repo}/commit/main", content=body)


def history(hub: HubProcess, repo: str) -> list[str]:
    with hub.client() as client:
        return [each["id"] for each in client.get(f"/api/models/{repo}/commits/main").json()]


def test_a_request_sent_twice_is_one_commit(hub: HubProcess, new_repo: NewRepo) -> None:
    repo = new_repo(hub)
    first, second = (commit(hub, repo, lines(file("a"))).json()["commitOid"] for _ in range(2))
    assert first == second == history(hub, repo)[0]
    parent = history(hub, repo)[0]
    body = lines(file("b"), parentCommit=parent)
    third, fourth = (commit(hub, repo, body) for _ in range(2))
    assert third.json() == fourth.json(), "the retry of a commit with a parent is not refused for its own success"
    assert len(history(hub, repo)) == 3


def test_the_same_words_after_another_commit_are_a_commit_again(hub: HubProcess, new_repo: NewRepo) -> None:
    repo = new_repo(hub)
    for content in (b"1", b"2", b"1"):
        assert commit(hub, repo, lines(file("a", content))).status_code == 200
    with hub.client() as client:
        assert client.get(f"/{repo}/resolve/main/a").content == b"1"
    assert len(history(hub, repo)) == 4


def test_commits_at_once_without_a_parent_all_land_in_a_line(hub: HubProcess, new_repo: NewRepo) -> None:
    repo = new_repo(hub)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: commit(hub, repo, lines(file(f"f{n}"))), range(12)))
    assert [answer.status_code for answer in answers] == [200] * 12
    assert len(history(hub, repo)) == 13
    with hub.client() as client:
        assert len(client.get(f"/api/models/{repo}/tree/main").json()) == 12


def test_of_commits_at_once_with_one_parent_one_lands(hub: HubProcess, new_repo: NewRepo) -> None:
    repo = new_repo(hub)
    parent = history(hub, repo)[0]
    with ThreadPoolExecutor(8) as pool:
        sent = pool.map(lambda n: commit(hub, repo, lines(file(f"f{n}"), parentCommit=parent)).status_code, range(8))
    assert sorted(sent) == [200, *[412] * 7]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (file("../x"), "absolute, or has a part"),
        (file("/etc/passwd"), "absolute, or has a part"),
        (file("a/.git/hooks/x"), ".git"),
        (file("a\\b"), "backslash"),
        (file("a\0b"), "control character"),
        (file("x" * 256), "longer than 255"),
        (file("readme.md"), "differ only in their case"),
        (file("README.md/x"), "is a file"),
        (("lfsFile", {"path": "w.bin", "algo": "sha256", "oid": "0" * 64}), "Not uploaded before the commit: w.bin"),
        (("lfsFile", {"path": "w.bin", "oid": "no"}), "no SHA-256"),
        (("file", {"path": "x", "content": "@@", "encoding": "base64"}), "not base64"),
        (("what", {"path": "x"}), "unknown key"),
    ],
)
def test_a_bad_step_refuses_the_whole_commit(
    sqlite_hub: HubProcess, new_repo: NewRepo, step: tuple[str, dict[str, object]], told: str
) -> None:
    repo = new_repo(sqlite_hub)
    commit(sqlite_hub, repo, lines(file("README.md")))
    before = history(sqlite_hub, repo)
    answer = commit(sqlite_hub, repo, lines(file("good"), step))
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert history(sqlite_hub, repo) == before


def test_a_deletion_of_what_is_not_there_is_told(sqlite_hub: HubProcess, new_repo: NewRepo) -> None:
    answer = commit(sqlite_hub, new_repo(sqlite_hub), lines(("deletedFile", {"path": "none"})))
    assert (answer.status_code, answer.headers["x-error-code"]) == (404, "EntryNotFound")


def test_pointers_in_the_place_of_weights_are_warned_of_and_refused_where_strict(
    sqlite_hub: HubProcess, new_repo: NewRepo
) -> None:
    repo = new_repo(sqlite_hub)
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n"
    bad = lines(file("model.safetensors", pointer), file("config.json", b"{"))
    with sqlite_hub.client(sqlite_hub.writer) as client:
        client.put(f"/api/models/{repo}/settings", json={"strict": True})
        refused = commit(sqlite_hub, repo, bad)
        client.put(f"/api/models/{repo}/settings", json={"strict": False})
    assert refused.status_code == 400
    assert "git-lfs pointer" in refused.text
    assert "config.json: line 1, column 2" in refused.text
    taken = commit(sqlite_hub, repo, bad)
    assert taken.status_code == 200
    assert taken.headers["x-hf-warning"].startswith("validation; ")


def test_a_folder_of_thousands_is_one_commit_and_read_in_pages(sqlite_hub: HubProcess, new_repo: NewRepo) -> None:
    repo = new_repo(sqlite_hub)
    steps = [file(f"many/f{n:05}.txt", str(n).encode()) for n in range(2500)]
    assert commit(sqlite_hub, repo, lines(*steps)).status_code == 200
    seen: list[str] = []
    with sqlite_hub.client() as client:
        url = f"/api/models/{repo}/tree/main?recursive=true"
        while url:
            answer = client.get(url)
            seen += [entry["path"] for entry in answer.json()]
            url = answer.links.get("next", {}).get("url", "")
            assert len(answer.json()) <= 1000
    assert seen == ["many", *(f"many/f{n:05}.txt" for n in range(2500))]
