"""Workers whose job's lock a keeper holds: two attempts at once, and stops that nobody of hfbench asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from story import until

from hfbench.beside import ALONE
from hfbench.jobs.directory import JobDirectory, create
from hfbench.jobs.snapshot import read_job
from hfbench.jobs.tail import read_events


@pytest.fixture
def job(root: Path, toy_actions: Path) -> Iterator[JobDirectory]:
    """A job that counts for a second or two, its lock held here."""
    made, lock = create(root, "toy.count", {"params": {"to": 60}, "lease": False})
    yield made
    os.close(lock)


def begin(job: JobDirectory, attempt: int = 0) -> subprocess.Popen[bytes]:
    """A worker as a node starts it."""
    words = [sys.executable, "-u", "-P", ALONE, "hfbench.worker", job.path, "--kept", "--attempt", str(attempt)]
    return subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL)


def begun(job: JobDirectory) -> bool:
    """Whether the work goes on."""
    return "number" in read_job(job).series


def kinds(job: JobDirectory) -> list[str]:
    """What happened, without figures."""
    return [event.kind for event in read_events(job) if event.kind not in ("metric", "progress")]


def test_a_second_attempt_waits_for_one_that_was_given_up_and_leaves_its_end_alone(job: JobDirectory) -> None:
    first = begin(job)
    until(lambda: begun(job), "it did not begin")
    second = begin(job, attempt=1)
    assert first.wait(30) == 0
    assert second.wait(30) == 0
    assert kinds(job) == ["started", "running", "finished"]
    assert read_job(job).series["number"].count == 60


def test_a_second_attempt_after_a_lost_one_tells_that_the_first_is_void(job: JobDirectory) -> None:
    first = begin(job)
    until(lambda: begun(job), "it did not begin")
    second = begin(job, attempt=1)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert second.wait(30) == 0
    assert kinds(job) == ["started", "running", "requeued", "started", "running", "finished"]
    assert read_job(job).series["number"].count == 60


def test_a_worker_that_a_scheduler_stops_leaves_the_last_word_to_the_keeper(job: JobDirectory) -> None:
    worker = begin(job)
    until(lambda: begun(job), "it did not begin")
    worker.terminate()
    assert worker.wait(30) != 0
    assert kinds(job) == ["started", "running"]


def test_a_worker_that_is_cancelled_says_so_itself(job: JobDirectory) -> None:
    worker = begin(job)
    until(lambda: begun(job), "it did not begin")
    job.write("cancel.json", {"at": 0})
    assert worker.wait(30) != 0
    assert kinds(job) == ["started", "running", "cancelled"]
