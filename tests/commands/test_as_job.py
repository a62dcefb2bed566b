"""What is said of a job whose end was not seen."""

from __future__ import annotations

import pytest

from hfbench.actions.registry import actions
from hfbench.commands.as_job import report_end
from hfbench.jobs.snapshot import JobSnapshot, State


def test_a_job_that_could_not_be_cancelled_yet_is_told_with_what_is_in_the_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = JobSnapshot(
        id="2026-01-05T08-00-00-verify-0123ab",
        action="verify",
        state=State.CANCELLING,
        on="ssh:box",
        trouble="box cannot be reached: connection refused",
    )
    assert report_end(actions()["verify"], left, as_json=False) == 1
    told = capsys.readouterr().err
    assert "box cannot be reached: connection refused. The job is left to be cancelled" in told
    assert "no reason given" not in told
