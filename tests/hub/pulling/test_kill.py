"""Pulls whose worker is killed for good, or that meet each other: real processes, real signals."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from stand_in_hub import COMMIT, StandIn, send_file, stand_in

from hfbench.hub.pulling.partial import JOURNAL, ranges_of, read_journal

MIB = 1 << 20
WEIGHTS = bytes(range(251)) * (80 * MIB // 251)
"""More than one stretch."""
FILES = {"config.json": b"{}", "model.safetensors": WEIGHTS, "README.md": b"# Model\n"}
AT = f"/org/model/resolve/{COMMIT}/model.safetensors"
ETAG = hashlib.sha1(f"blob {len(WEIGHTS)}\0".encode() + WEIGHTS).hexdigest()
PATIENCE = 60.0


@pytest.fixture
def hub() -> Iterator[StandIn]:
    with stand_in(files=dict(FILES)) as running:
        yield running


class Holding:
    """Answers that send so many bytes of what was asked for and then hold until they are let go."""

    def __init__(self, count: int) -> None:
        self.count, self.gate = count, threading.Event()

    def __call__(self, at: BaseHTTPRequestHandler) -> None:
        first, _, last = at.headers.get("Range", f"bytes=0-{len(WEIGHTS) - 1}").removeprefix("bytes=").partition("-")
        begin, end = int(first), int(last) + 1
        at.send_response(206)
        at.send_header("Content-Length", str(end - begin))
        at.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(WEIGHTS)}")
        at.end_headers()
        at.wfile.write(WEIGHTS[begin : min(end, begin + self.count)])
        at.wfile.flush()
        self.gate.wait(PATIENCE)
        at.wfile.write(WEIGHTS[begin + self.count : end])


class Worker:
    """A pull as a job, in processes of its own."""

    def __init__(self, hub: StandIn, cache: Path) -> None:
        words = ["pull", "org/model", "--endpoint", hub.url, "--cache-dir", str(cache), "--detach", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "hfbench", *words], capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        self.folder = Path(json.loads(done.stdout)["directory"])
        self.cache = cache

    def events(self) -> list[dict[str, object]]:
        try:
            lines = (self.folder / "events.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def until(self, there: int) -> None:
        """Wait until the journal tells of so many bytes."""
        journal = self.cache / "models--org--model" / "blobs" / f"{ETAG}{JOURNAL}"
        deadline = time.monotonic() + PATIENCE
        while ranges_of(read_journal(journal)[1], len(WEIGHTS)).total < there:
            assert time.monotonic() < deadline, self.events()
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to all of it."""
        pid = next(int(str(event["pid"])) for event in self.events() if event["kind"] == "started")
        os.kill(pid, signal.SIGKILL)  # the working process dies with its supervisor

    def ended(self) -> dict[str, object]:
        """The last event, and the result where there is one."""
        deadline = time.monotonic() + PATIENCE
        while not (events := self.events()) or events[-1]["kind"] not in ("finished", "failed", "died", "cancelled"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        result = self.folder / "result.json"
        return {**events[-1], "result": json.loads(result.read_text())["result"] if result.exists() else None}


def published(cache: Path) -> list[str]:
    return sorted(each.name for each in (cache / "models--org--model" / "blobs").iterdir() if "." not in each.name)


def test_a_pull_that_is_killed_again_and_again_goes_on_where_it_was(hub: StandIn, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    there = 0
    # Two stretches, of 64 and 16 MiB; the journal learns of every 4 MiB, and the second stretch is whole after two.
    for count, there in ((5 * MIB, 8 * MIB), (13 * MIB, 32 * MIB), (9 * MIB, 40 * MIB)):
        hub.answers[AT] = holding = Holding(count)
        worker = Worker(hub, cache)
        worker.until(there)
        assert ETAG not in published(cache)
        worker.kill()
        holding.gate.set()
    hub.answers.clear()
    hub.asked.clear()
    done = Worker(hub, cache).ended()
    result = done["result"]
    assert isinstance(result, dict), done
    assert result["resumed_bytes"] >= there
    assert result["wanted_bytes"] - len(WEIGHTS) in range(100)  # the configuration too, where a kill came before it
    assert result["fetched_bytes"] == result["wanted_bytes"] - result["resumed_bytes"]
    assert (Path(result["folder"]) / "model.safetensors").read_bytes() == WEIGHTS
    assert not list(cache.rglob("*incomplete"))


def test_two_pulls_of_the_same_share_the_work(hub: StandIn, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    hub.answers[AT] = holding = Holding(5 * MIB)
    first = Worker(hub, cache)
    first.until(4 * MIB)
    hub.answers[AT] = lambda at: send_file(at, WEIGHTS)
    second = Worker(hub, cache)
    time.sleep(1.0)
    holding.gate.set()
    results = [each.ended()["result"] for each in (first, second)]
    assert all(isinstance(each, dict) for each in results), [first.events(), second.events()]
    fetched = sum(each["fetched_bytes"] for each in results if isinstance(each, dict))
    assert len(WEIGHTS) <= fetched <= len(WEIGHTS) + 100
    folder = cache / "models--org--model" / "snapshots" / COMMIT
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


def test_the_partial_of_a_killed_pull_is_taken_over_by_one_that_waited(hub: StandIn, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    hub.answers[AT] = holding = Holding(9 * MIB)
    first = Worker(hub, cache)
    first.until(16 * MIB)
    hub.answers[AT] = lambda at: send_file(at, WEIGHTS)
    second = Worker(hub, cache)
    time.sleep(0.5)
    first.kill()
    result = second.ended()["result"]
    holding.gate.set()
    assert isinstance(result, dict)
    assert result["resumed_bytes"] >= 16 * MIB
    assert (Path(result["folder"]) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_pull_that_is_cancelled_ends_at_once_and_goes_on_later(hub: StandIn, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    hub.answers[AT] = holding = Holding(5 * MIB)
    worker = Worker(hub, cache)
    worker.until(8 * MIB)
    began = time.monotonic()
    words = ["jobs", "cancel", worker.folder.name]
    subprocess.run([sys.executable, "-m", "hfbench", *words], check=True, capture_output=True, timeout=PATIENCE)
    assert worker.ended()["kind"] == "cancelled"
    assert time.monotonic() - began < 10
    holding.gate.set()
    hub.answers.clear()
    result = Worker(hub, cache).ended()["result"]
    assert isinstance(result, dict)
    assert result["resumed_bytes"] >= 8 * MIB


def test_the_job_tells_rate_and_every_file(hub: StandIn, tmp_path: Path) -> None:
    hub.answers[AT] = holding = Holding(5 * MIB)
    worker = Worker(hub, tmp_path / "cache")
    worker.until(8 * MIB)
    time.sleep(1.2)
    files = {each["path"]: each for each in json.loads((worker.folder / "files.json").read_text())}
    assert files["model.safetensors"]["bytes"] == len(WEIGHTS)
    assert 8 * MIB <= files["model.safetensors"]["done"] < len(WEIGHTS)
    assert {"rate", "eta"} <= {str(event.get("name")) for event in worker.events()}
    holding.gate.set()
    worker.ended()
    assert [event["done"] for event in worker.events() if event["kind"] == "progress"][-1] == sum(
        len(content) for content in FILES.values()
    )


def test_four_processes_that_pull_the_same_at_once_all_succeed(hub: StandIn, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    code = "import sys; from pathlib import Path; from hfbench.hub.pull import pull; from hfbench.jobs.run import Run; "
    code += "print(pull('org/model', Run(), endpoint=sys.argv[1], cache=Path(sys.argv[2])).fetched_bytes)"
    words = [sys.executable, "-c", code, hub.url, str(cache)]
    every = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    fetched = [int(each.communicate(timeout=PATIENCE)[0]) for each in every]
    assert sum(fetched) == sum(len(content) for content in FILES.values()), "each content is fetched once"
    folder = cache / "models--org--model" / "snapshots" / COMMIT
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
