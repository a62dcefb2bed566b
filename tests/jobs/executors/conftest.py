"""Executors that a test asks for, with what finds them in the environment, and a keeper that can be killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from story import until

from hfbench.jobs.directory import JobDirectory

if TYPE_CHECKING:
    from slurm_lab import SlurmLab
    from ssh_lab import SshLab


@pytest.fixture
def slurm(slurm_lab: SlurmLab, monkeypatch: pytest.MonkeyPatch, toy_actions: Path) -> Iterator[SlurmLab]:
    """The cluster, with both nodes up and idle before and after."""
    for name, value in slurm_lab.env.items():
        monkeypatch.setenv(name, value)
    yield slurm_lab
    slurm_lab.mend()


@pytest.fixture
def box(ssh_lab: SshLab, monkeypatch: pytest.MonkeyPatch, toy_actions: Path) -> Iterator[SshLab]:
    """The second box; what runs there knows the toys."""
    monkeypatch.setenv("PATH", f"{ssh_lab.bin}{os.pathsep}{os.environ['PATH']}")
    if not (ssh_lab.folder / "knows-toys").exists():
        ssh_lab.stop()
        ssh_lab.start({"HFBENCH_ACTIONS": str(toy_actions)})
        (ssh_lab.folder / "knows-toys").touch()
    yield ssh_lab
    ssh_lab.mend()


@pytest.fixture
def there() -> str:
    """`--on` of the second box."""
    return f"ssh:box,python={sys.executable},poll=0.3"


def keeper_of(job: JobDirectory) -> int:
    """The process that holds the lock of a job and is no worker."""
    wanted = str(job.path).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"hfbench.jobs.executors.keeper" in words and wanted in words:
                return int(entry.name)
    raise AssertionError(f"{job.id} has no keeper")


@pytest.fixture
def kill_keeper() -> Callable[[JobDirectory], None]:
    """Kill the keeper of a job with -9 and wait until its lock is free."""

    def kill(job: JobDirectory) -> None:
        os.kill(keeper_of(job), signal.SIGKILL)
        until(lambda: not job.alive(), "the keeper did not go")

    return kill


@pytest.fixture
def counted_once() -> Callable[[JobDirectory, int], None]:
    """Assert that a counting job told each number once, in order, and that its story has one end, at its end."""

    def check(job: JobDirectory, to: int) -> None:
        events = [json.loads(line) for line in job.events.read_text().splitlines()]
        numbers = [event["value"] for event in events if event["kind"] == "metric"]
        assert numbers == [float(number) for number in range(1, to + 1)]
        assert [event["kind"] for event in events if event["kind"] in ("finished", "failed", "died")] == ["finished"]
        assert events[-1]["kind"] == "finished"

    return check
