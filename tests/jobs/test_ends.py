"""Every way a job can end on its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from story import JobStory, until

from hfbench.exits import Exit
from hfbench.jobs.snapshot import State


def test_a_job_that_finishes_has_a_result_and_says_so_last(story: JobStory) -> None:
    story.launch("toy.count", to=3).expect_outcome("finished").expect_last_event("finished")
    assert story.end().result == {"count": 3, "doubled": 6.0}
    assert [event.kind for event in story.events][:2] == ["started", "running"]
    assert story.now.progress is not None
    assert (story.now.progress.done, story.now.progress.share) == (3, 1.0)
    assert story.now.series["number"].values == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("how", "outcome", "reason"),
    [
        ("error", "failed", "toy: the toy is broken. Buy another"),
        ("missing", "failed", "there is no toy here. Install one"),
        ("bug", "failed", "ZeroDivisionError: a bug"),
        ("memory", "failed", "out of host memory"),
        ("leave", "died", "exited with status 3 without a result"),
        ("exit", "died", "exited with status 7 without a result"),
        ("segv", "died", "SIGSEGV: native code crashed"),
        ("kill", "died", "SIGKILL: by somebody"),
    ],
)
def test_a_bad_end_is_told_with_its_reason_and_the_last_lines(
    story: JobStory, how: str, outcome: str, reason: str
) -> None:
    story.launch("toy.fail", how=how).expect_outcome(outcome).expect_reason(contains=reason)
    story.expect_log_tail(contains=f"about to fail by {how}").expect_last_event(outcome)


def test_a_job_whose_result_says_no_has_finished(story: JobStory) -> None:
    story.launch("toy.fail", how="result").expect_outcome("finished")
    assert story.end().result == {"failed": True}


def test_an_unforeseen_error_keeps_its_traceback_out_of_the_sentence(story: JobStory) -> None:
    story.launch("toy.fail", how="bug").expect_outcome("failed")
    assert "Traceback" not in story.end().sentence()
    assert "toy_fail.py" in story.events[-1].traceback  # type: ignore[attr-defined]
    assert story.job.short_id in story.end().sentence()


def test_a_missing_thing_keeps_its_exit_code(story: JobStory) -> None:
    story.launch("toy.fail", how="missing")
    assert (story.end().error or {})["exit"] == Exit.ENVIRONMENT


def test_a_wrong_request_fails_with_the_field_named(story: JobStory) -> None:
    story.launch("toy.count", to=0, speed=1).expect_outcome("failed")
    story.expect_reason("to: 0 is below the least value 1").expect_reason("unknown field 'speed'")


def test_an_unknown_action_fails_with_the_nearest_name(story: JobStory) -> None:
    story.launch("toy.cuont").expect_outcome("failed").expect_reason("did you mean 'toy.count'?".capitalize())


def test_an_interpreter_that_is_not_there_is_said_at_once_and_kept_in_history(story: JobStory, root: Path) -> None:
    from hfbench.errors import MissingError
    from hfbench.jobs.history import History

    with pytest.raises(MissingError, match=r"/no/python: the worker's interpreter cannot be started"):
        story.launch("toy.count", command=["/no/python"])
    [row] = History(root).rows()
    assert (row.state, "cannot be started" in row.note) == (State.FAILED, True)


def test_time_is_over_after_the_limit_and_says_which(story: JobStory) -> None:
    story.launch("toy.count", to=100_000, timeout=0.3).expect_outcome("failed")
    story.expect_reason("ran longer than its time limit of 300 ms").expect_last_event("failed")


def test_what_a_job_starts_does_not_outlive_it(story: JobStory) -> None:
    """A forked helper would keep the device and, holding the lock, the job alive."""
    story.launch("toy.count", to=2, stray=True).expect_outcome("finished")
    stray = int((story.job.path / "artifacts" / "stray").read_text())
    from story import gone

    until(lambda: gone(stray), "the stray process lives on")


def test_the_environment_of_a_job_is_kept_beside_it(story: JobStory) -> None:
    story.launch("toy.count", to=1).end()
    told = story.job.read("environment.json") or {}
    assert told["executable"]
    assert told["versions"]["hfbench"]
    assert told["cores"] == len(os.sched_getaffinity(0))
    assert "gpus" in told
