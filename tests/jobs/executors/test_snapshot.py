"""How a job elsewhere reads: what its keeper told, and what is known while it has none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hfbench.jobs.cancel import left_to_cancel
from hfbench.jobs.directory import JobDirectory, create, take_lock
from hfbench.jobs.events import Event, Finished, Metric, Placed, Progress, Requeued, Running, Trouble, Waiting, to_line
from hfbench.jobs.executors.base import Placement
from hfbench.jobs.executors.spec import parse_on
from hfbench.jobs.history import History
from hfbench.jobs.snapshot import Follower, read_job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[JobDirectory]:
    """A job on Slurm whose lock is held here."""
    made, lock = create(tmp_path, "toy.count", {"on": "slurm:gpu", "params": {}})
    Placement(where=parse_on("slurm:gpu"), token="t", id="7_0", node="n1").write(made)
    yield made
    os.close(lock)


def tell(job: JobDirectory, *events: Event) -> None:
    """Append events."""
    with job.events.open("ab") as file:
        file.writelines(map(to_line, events))


def test_a_waiting_job_is_queued_for_the_reason_its_executor_gives(job: JobDirectory) -> None:
    tell(job, Placed(on="slurm:gpu", id="7_0"), Waiting(reason="waits for free resources"))
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.waits_for) == ("queued", "waits for free resources")
    assert (snapshot.on, snapshot.place) == ("slurm:gpu", "7_0 on n1")
    (row,) = History(job.path.parent).rows()
    assert row.note == "waits for free resources"


def test_what_was_told_before_a_requeue_is_void(job: JobDirectory) -> None:
    follower = Follower(job)
    tell(job, Running(), Metric(name="n", value=1.0, unit="s"), Progress(phase="count", done=5, total=9))
    assert follower.read().series["n"].count == 1
    tell(job, Requeued(reason="node n1 was lost", attempt=1))
    again = follower.read()
    assert (again.state, again.series, again.phases, again.started) == ("queued", {}, (), None)
    assert again.logs[-1].text == "begun again: node n1 was lost"
    tell(job, Running(), Metric(name="n", value=2.0, unit="s"))
    assert follower.read().series["n"].values == (2.0,)
    assert read_job(job).series["n"].values == (2.0,), "whoever reads it all at once sees the same"


def test_trouble_with_the_executor_leaves_the_state_and_is_over_with_the_job(job: JobDirectory) -> None:
    placed = Placement(where=parse_on("slurm:gpu"), token="t", id="7_0", trouble="slurmctld does not answer")
    placed.write(job)
    tell(job, Running(), Trouble(reason="slurmctld does not answer"))
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.trouble) == ("running", "slurmctld does not answer")
    assert snapshot.logs[-1].text == "slurmctld does not answer"
    tell(job, Finished(seconds=1.0))
    assert read_job(job).trouble == ""


def test_a_job_without_a_keeper_is_not_called_dead_while_it_may_run_elsewhere(tmp_path: Path) -> None:
    job, lock = create(tmp_path, "toy.count", {"on": "slurm:gpu", "params": {}})
    os.close(lock)
    tell(job, Running())
    assert read_job(job).state == "died", "nothing was handed over"
    Placement(where=parse_on("slurm:gpu"), token="t", id="7_0").write(job)
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.orphan) == ("running", True)
    assert "hfbench starts another" in snapshot.trouble


@pytest.mark.parametrize("damage", [b"{", b"", b'{"v": 99}', bytes(40)])
def test_a_job_whose_place_cannot_be_read_is_dead_only_when_nothing_is_heard_of_it(
    tmp_path: Path, damage: bytes
) -> None:
    job, lock = create(tmp_path, "toy.count", {"on": "slurm:gpu", "params": {}})
    os.close(lock)
    tell(job, Placed(on="slurm:gpu", id="7_0"), Running())
    (job.path / "executor.json").write_bytes(damage)
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.unled) == ("running", True)
    assert "cannot be read" in snapshot.trouble
    assert "if slurm:gpu still has 7_0, end it there by hand" in left_to_cancel(snapshot)
    os.utime(job.events, (0, 0))
    kept = take_lock(job.path / "worker.lock")
    assert kept is not None
    assert read_job(job).state == "running", "its worker holds its lock"
    os.close(kept)
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.trouble) == ("died", "")
    assert snapshot.reason.endswith("if slurm:gpu still has 7_0, end it there by hand")
