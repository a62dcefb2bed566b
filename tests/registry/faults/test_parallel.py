"""Commits at once: all of them in a line, or one of them; also by two workers of which one is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from hub_process import HubProcess, make_hub
from test_commits import commit, file, history, lines

AT_ONCE = 20


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def two_workers(request: pytest.FixtureRequest, memory_folder: Path) -> Iterator[HubProcess]:
    """A hub with two workers, on each database."""
    database = request.getfixturevalue("new_database")() if request.param == "postgresql" else ""
    hub = make_hub(memory_folder / request.param, database, workers=2)
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture
def repo(two_workers: HubProcess) -> str:
    name = f"r{next(_numbers)}"
    with two_workers.client(two_workers.writer) as client:
        client.post("/api/repos/create", json={"name": name, "organization": "team"})
    return f"team/{name}"


_numbers = iter(range(1000))


def workers(hub: HubProcess) -> list[int]:
    assert hub.process
    told = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(hub.process.pid)], capture_output=True, text=True)
    rows = [row.split(None, 1) for row in told.stdout.splitlines()]
    return [int(pid) for pid, command in rows if "tracker" not in command]


def test_commits_at_once_without_a_parent_all_land_in_a_line(two_workers: HubProcess, repo: str) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sent = list(pool.map(lambda n: commit(two_workers, repo, lines(file(f"f{n}"))).status_code, range(AT_ONCE)))
    assert sent == [200] * AT_ONCE
    assert len(history(two_workers, repo)) == AT_ONCE + 1
    assert paths(two_workers, repo) == {f"f{n}" for n in range(AT_ONCE)}


def test_of_commits_at_once_with_one_parent_one_lands(two_workers: HubProcess, repo: str) -> None:
    parent = history(two_workers, repo)[0]

    def one(number: int) -> int:
        return commit(two_workers, repo, lines(file(f"f{number}"), parentCommit=parent)).status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sorted(pool.map(one, range(AT_ONCE))) == [200, *[412] * (AT_ONCE - 1)]
    assert len(history(two_workers, repo)) == 2


def test_a_worker_that_is_killed_during_commits_leaves_no_lock_and_no_gap(two_workers: HubProcess, repo: str) -> None:
    hub, over = two_workers, threading.Event()
    before = set(workers(hub))
    assert len(before) == 2

    def kill() -> None:
        chosen = random.Random(0)
        while not over.wait(0.2 + chosen.random() / 5):
            if alive := [pid for pid in workers(hub) if pid in before]:
                os.kill(chosen.choice(alive), signal.SIGKILL)
                return

    def one(number: int) -> bool:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                answer = commit(hub, repo, lines(file(f"f{number}", b"%d" % number)))
            except httpx2.TransportError:
                continue  # a client tries again when the connection breaks
            if answer.status_code == 200:
                return True
            assert answer.status_code == 503, answer.text
        return False

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(one, range(60)))
    finally:
        over.set()
        killer.join()
    assert len(set(workers(hub)) & before) == 1, "one was killed"
    assert paths(hub, repo) == {f"f{n}" for n in range(60)}
    assert len(history(hub, repo)) == 50, "a page of a line"
    begun = time.monotonic()
    assert commit(hub, repo, lines(file("after"))).status_code == 200
    assert time.monotonic() - begun < 5, "nothing waits for a lock of the dead"
    with hub.client() as client:
        titles = client.get(f"/api/models/{repo}/commits/main?limit=1000").json()
    assert len(titles) == 62


def paths(hub: HubProcess, repo: str) -> set[str]:
    with hub.client() as client:
        return {entry["path"] for entry in client.get(f"/api/models/{repo}/tree/main").json()}


def test_a_retried_commit_is_found_on_its_own_branch_only(two_workers: HubProcess, repo: str) -> None:
    hub = two_workers
    with hub.client(hub.writer) as client:
        assert client.post(f"/api/models/{repo}/branch/dev", json={}).status_code == 200
        body = lines(file("x"), parentCommit=history(hub, repo)[0])
        first = client.post(f"/api/models/{repo}/commit/main", content=body).json()["commitOid"]
        second = client.post(f"/api/models/{repo}/commit/dev", content=body).json()["commitOid"]
        assert first != second
        assert client.get(f"/{repo}/resolve/dev/x").content == b"x"


def test_a_retried_deletion_after_which_others_committed_is_no_error(two_workers: HubProcess, repo: str) -> None:
    hub, gone = two_workers, lines(("deletedFile", {"path": "x"}))
    commit(hub, repo, lines(file("x")))
    first = commit(hub, repo, gone).json()["commitOid"]
    commit(hub, repo, lines(file("y")))
    again = commit(hub, repo, gone)
    assert (again.status_code, again.json().get("commitOid")) == (200, first)
    assert len(history(hub, repo)) == 4


@pytest.mark.parametrize("without_xet", [False, True], ids=["xet", "lfs"])
def test_a_stock_client_gets_through_while_a_worker_is_killed(
    two_workers: HubProcess, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_xet: bool
) -> None:
    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", without_xet)
    (tmp_path / "up").mkdir()
    for name in ("a.bin", "b.bin", "c.txt"):
        (tmp_path / "up" / name).write_bytes(random.Random(name).randbytes(2_000_000))
    api = HfApi(endpoint=two_workers.url, token=two_workers.writer)
    chosen = workers(two_workers)[0]
    killer = threading.Timer(0.2, os.kill, (chosen, signal.SIGKILL))
    killer.start()

    def tried(work: Callable[[], object]) -> object:
        """What a user would do: neither a commit in flight nor every download is repeated by the client itself."""
        for _ in range(3):
            with suppress(OSError, httpx2.TransportError, RuntimeError):
                return work()
        return work()

    tried(lambda: api.upload_folder(repo_id=repo, folder_path=tmp_path / "up"))
    killer.join()
    back = tmp_path / "back"
    tried(lambda: api.snapshot_download(repo, local_dir=back))
    for path in (tmp_path / "up").iterdir():
        assert (back / path.name).read_bytes() == path.read_bytes()
    with two_workers.client() as client:
        told = client.get(f"/api/models/{repo}/commits/main").json()
    assert len(told) == 2, "one commit, however often it was sent"
