"""What is told on stderr of a job that takes long, where no line can be drawn again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hfbench.commands import watch as watching
from hfbench.jobs.directory import find_job
from hfbench.jobs.events import ADVICE, Log
from hfbench.jobs.snapshot import JobSnapshot, State
from hfbench.paths import jobs_root


@pytest.mark.usefixtures("toy_actions")
def test_each_phase_of_a_long_job_is_a_line_and_a_short_one_says_nothing(
    hfbench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("toy", "count", "--to", "60", "--pause", "0.02", "--detach")
    hfbench(*words)
    assert watching.watch(find_job(jobs_root(), "last")).state is State.FINISHED
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(watching, "SLOW", 0.1)
    hfbench(*words)
    watching.watch(find_job(jobs_root(), "last"))
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hfbench: ")
    assert line.endswith("s  count")
    hfbench(*words)
    watching.watch(find_job(jobs_root(), "last"), quiet=True)
    assert capsys.readouterr().err == ""


def test_advice_is_told_once_and_other_lines_of_the_log_are_left_to_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    logs = (Log(at=1.0, text="read"), Log(at=2.0, text="give --budget 9s", level=ADVICE), Log(at=3.0, text="done"))
    told = watching.JobLines(live=False)
    for _ in range(2):
        told.advice(JobSnapshot(id="", action="", state=State.RUNNING, logs=logs))
    assert capsys.readouterr().err == "hfbench: give --budget 9s\n"


def test_what_keeps_a_job_elsewhere_waiting_is_a_line_each_and_none_twice(capsys: pytest.CaptureFixture[str]) -> None:
    told = watching.JobLines(live=False)
    waits = JobSnapshot(id="", action="", state=State.QUEUED, on="slurm:gpu", waits_for="waits for free resources")
    for snapshot in (
        JobSnapshot(id="", action="", on="slurm:gpu", trouble="slurmctld does not answer"),
        waits,
        replace(waits, trouble="slurmctld does not answer"),
        JobSnapshot(id="", action="", state=State.FINISHED, trouble="over"),
    ):
        told.obstacle(snapshot)
    assert capsys.readouterr().err.splitlines() == [
        "hfbench: slurmctld does not answer",
        "hfbench: queued on slurm:gpu: waits for free resources",
    ]
