"""What scontrol prints, as recorded from Slurm 22.05, and what is made of it."""

from __future__ import annotations

import pytest

from hfbench.jobs.events import Cancelled, Died, Failed
from hfbench.jobs.executors.base import Phase
from hfbench.jobs.executors.slurm import _time
from hfbench.jobs.executors.slurm_states import Task, in_words, last_event, look_of, never, read_tasks

LINE = (
    "JobId=10 ArrayJobId=7 ArrayTaskId={tasks} JobName=hfbench-tok UserId=root(0) GroupId=root(0) MCS_label=N/A"
    " Priority=4294901753 Nice=0 Account=(null) QOS=(null) JobState={state} Reason={reason} Dependency=(null) Requeue=1"
    " Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={code} RunTime=00:00:05 TimeLimit=01:00:00 TimeMin=N/A"
    " PreemptTime=None NodeList={node} BatchHost={node} Command=/x WorkDir=/tmp/JobState=CANCELLED ExitCode=9:9"
)


def task(state: str, reason: str = "None", *, code: str = "0:0", restarts: int = 0, node: str = "n1") -> Task:
    """A task as scontrol would tell it."""
    text = LINE.format(tasks="2", state=state, reason=reason, code=code, restarts=restarts, node=node)
    return next(read_tasks(text))


def test_one_line_may_stand_for_many_waiting_tasks() -> None:
    text = LINE.format(tasks="0,2-4%2", state="PENDING", reason="Resources", code="0:0", restarts=0, node="(null)")
    assert [each.name for each in read_tasks(text)] == ["7_0", "7_2", "7_3", "7_4"]


def test_numbers_may_be_told_with_a_step() -> None:
    text = LINE.format(tasks="1,4-10:3%2", state="PENDING", reason="None", code="0:0", restarts=0, node="(null)")
    assert [each.name for each in read_tasks(text)] == ["7_1", "7_4", "7_7", "7_10"]


def test_what_a_user_names_a_folder_changes_no_state() -> None:
    assert task("RUNNING").state == "RUNNING"
    assert task("RUNNING").code == 0


@pytest.mark.parametrize("text", ["", "slurm_load_jobs error", "JobId=7 JobState=RUNNING", "ArrayTaskId=N/A", "=\n= ="])
def test_what_is_no_array_has_no_tasks(text: str) -> None:
    assert list(read_tasks(text)) == []


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        ("PENDING", "Resources", "waits for free resources"),
        ("PENDING", "Priority", "other jobs go before it"),
        ("PENDING", "JobHeldUser", "scontrol release 7_2"),
        ("PENDING", "launch_failed_requeued_held", "begun again and held (launch failed requeued held)"),
        ("PENDING", "ReqNodeNotAvail,_UnavailableNodes:n1", "is not available (UnavailableNodes:n1)"),
        ("PENDING", "QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit"),
    ],
)
def test_a_reason_to_wait_is_told_in_words(state: str, reason: str, told: str) -> None:
    assert told in in_words(task(state, reason))


def test_only_what_slurm_would_hold_for_ever_never_begins() -> None:
    assert never(task("PENDING", "PartitionTimeLimit")) is not None
    assert never(task("PENDING", "Resources")) is None
    assert never(task("RUNNING", "PartitionTimeLimit")) is None


@pytest.mark.parametrize(
    ("state", "code", "kind", "told"),
    [
        ("FAILED", "3:0", Died, "status 3"),
        ("FAILED", "0:9", Died, "signal 9"),
        ("COMPLETED", "0:0", Died, "left no word"),
        ("NODE_FAIL", "0:0", Died, "node n1 was lost"),
        ("PREEMPTED", "0:0", Died, "gave way"),
        ("OUT_OF_MEMORY", "0:125", Died, "more memory"),
        ("TIMEOUT", "0:0", Failed, "time limit of 01:00:00"),
        ("CANCELLED", "0:0", Cancelled, "outside hfbench"),
    ],
)
def test_an_end_without_a_word_of_the_worker_says_how(state: str, code: str, kind: type, told: str) -> None:
    event = last_event(task(state, code=code))
    assert isinstance(event, kind)
    assert told in (event.error["found"] if isinstance(event, Failed) else event.reason)  # type: ignore[attr-defined]


def test_a_task_begun_again_says_what_became_of_its_node() -> None:
    waiting = task("PENDING", "BeginTime", restarts=1, node="(null)")
    lost = look_of(waiting, down={"n1": "down*"}, node_before="n1", begun=0)
    assert (lost.phase, lost.attempt) == (Phase.WAITING, 1)
    assert "node n1 was lost" in lost.reason
    assert "somebody requeued it" in look_of(waiting, down={}, node_before="n1", begun=0).reason
    assert "two minutes" in look_of(waiting, down={}, node_before="", begun=0).reason


def test_a_task_that_leaves_its_node_to_begin_again_waits_and_one_that_has_begun_again_runs() -> None:
    leaving = task("COMPLETING", restarts=1)
    assert look_of(leaving, down={}, node_before="n1", begun=0).phase is Phase.WAITING
    assert look_of(leaving, down={}, node_before="n1", begun=1).phase is Phase.RUNNING
    assert look_of(task("COMPLETING"), down={}, node_before="", begun=0).phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("text", "slurm"), [("", ""), ("30", "30"), ("1-2:00", "1-2:00"), ("30m", "30"), ("90s", "2"), ("2h", "120")]
)
def test_a_time_limit_is_written_as_slurm_reads_it(text: str, slurm: str) -> None:
    assert _time(text) == slurm
