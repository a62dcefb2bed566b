"""Copying what a worker writes elsewhere: every line once, whatever is cut where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Finished, Metric, Placed, Requeued, Running, Trouble, to_line
from hfbench.jobs.executors.base import ExecutorTrouble
from hfbench.jobs.executors.mirror import Mirror
from hfbench.jobs.tail import read_events

FAR = [to_line(Running()), *(to_line(Metric(name="n", value=float(n), unit="s")) for n in range(20))]
END = to_line(Finished(seconds=1.0))


def a_job(folder: Path) -> JobDirectory:
    """A job without events so far."""
    job = JobDirectory(folder)
    job.path.mkdir(parents=True, exist_ok=True)
    job.events.write_bytes(b"")
    return job


@settings(max_examples=60)
@given(st.data())
def test_a_keeper_killed_anywhere_and_followed_by_another_copies_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    job, far = a_job(tmp_path_factory.mktemp("job")), b"".join(FAR) + END
    mirror = Mirror(job)
    while not mirror.over:
        if data.draw(st.booleans(), label="a keeper's own event"):
            with job.events.open("ab") as file:
                file.write(to_line(data.draw(st.sampled_from([Placed(on="x", id="1"), Trouble(reason="cut")]))))
        lines = far[mirror.events :].splitlines(keepends=True)
        mirror.add_events(b"".join(lines[: data.draw(st.integers(1, 8))]), lambda: None)
        if not mirror.over and data.draw(st.booleans(), label="killed"):
            with job.events.open("ab") as file:
                file.write(FAR[3][: data.draw(st.integers(0, len(FAR[3]) - 1))])
            mirror = Mirror(job)
    copied = [line for line in job.events.read_bytes().splitlines(keepends=True) if b"placed" not in line]
    assert b"".join(line for line in copied if b"trouble" not in line) == far


def test_the_last_event_comes_only_after_the_result(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    mirror = Mirror(job)

    def fails() -> None:
        assert [event.kind for event in read_events(job)] == ["running"]
        raise ExecutorTrouble("the connection was cut")

    with pytest.raises(ExecutorTrouble):
        mirror.add_events(FAR[0] + END, fails)
    assert not mirror.over
    mirror.add_events(END, lambda: None)
    assert mirror.over
    assert [event.kind for event in read_events(job)] == ["running", "finished"]


def test_after_a_requeue_the_far_files_begin_anew(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    Mirror(job).add_events(b"".join(FAR), lambda: None)
    job.log.write_bytes(b"of the first attempt\n")
    with job.events.open("ab") as file:
        file.write(to_line(Requeued(reason="lost", attempt=1)))
    mirror = Mirror(job, log_base=job.log.stat().st_size)
    assert (mirror.events, mirror.log) == (0, 0)
    mirror.add_log(b"of the second\n")
    assert Mirror(job, log_base=21).log == len(b"of the second\n")
