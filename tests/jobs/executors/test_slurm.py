"""Jobs on a real Slurm of two nodes: arrays, refusals, reasons, losses."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from story import JobStory, gone, until

from hfbench.errors import UsageError
from hfbench.jobs.cancel import request_cancel
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.executors.base import Need, placement_of
from hfbench.jobs.executors.known import executor_of
from hfbench.jobs.executors.slurm import Slurm
from hfbench.jobs.executors.spec import parse_on
from hfbench.jobs.follow import wait_until
from hfbench.jobs.launch import JobRequest, adopt, launch_many
from hfbench.paths import config_file

if TYPE_CHECKING:
    from slurm_lab import SlurmLab

DEBUG = "slurm:debug,poll=0.3"


def kinds(job: JobDirectory) -> list[str]:
    """The kinds of a job's events without its figures."""
    from hfbench.jobs.tail import read_events

    return [event.kind for event in read_events(job) if event.kind not in ("metric", "progress")]


def reason_of(story: JobStory) -> str:
    """Why a job that was begun again says it was."""
    return next(event.reason for event in story.events if event.kind == "requeued")  # type: ignore[attr-defined]


def test_a_batch_is_one_array_whose_tasks_run_on_both_nodes(slurm: SlurmLab, root: Path) -> None:
    requests = [JobRequest(action="toy.count", params={"to": 40 + n}, on=DEBUG) for n in range(4)]
    jobs = launch_many(root, requests)
    ended = [wait_until(job, lambda s: s.state.over, timeout=30) for job in jobs]
    assert [snapshot.state for snapshot in ended] == ["finished"] * 4
    assert [snapshot.result["count"] for snapshot in ended if snapshot.result] == [40, 41, 42, 43]
    arrays, tasks = zip(*(snapshot.place.partition(" on ")[0].split("_") for snapshot in ended), strict=True)
    assert len(set(arrays)) == 1
    assert tasks == ("0", "1", "2", "3")
    assert {snapshot.place.partition(" on ")[2] for snapshot in ended} == {"n1", "n2"}
    until(lambda: not any(job.alive() for job in jobs), "the keeper stays")
    assert not list(root.glob(".batch-*")), "the links of an array go with its keeper"


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("slurm:nope", "no partition 'nope'; it has debug, urgent, closed"),
        ("slurm:debug,gres=gpu:b200:1", "gpu:a100:2"),
        ("slurm:debug,memory=900G", "8000 MB"),
    ],
)
def test_what_can_never_run_is_refused_before_there_is_a_job(slurm: SlurmLab, root: Path, on: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        launch_many(root, [JobRequest(action="toy.count", params={}, on=on)])
    assert job_ids(root) == []


def test_a_time_above_the_partitions_ends_the_job_that_would_wait_for_ever(slurm: SlurmLab, story: JobStory) -> None:
    story.launch("toy.count", on=f"{DEBUG},time=10h").expect_outcome("failed").expect_reason("would never begin")
    assert not slurm.call("squeue", "-h").stdout.strip()


def test_the_word_of_a_worker_that_failed_or_crashed_stands(slurm: SlurmLab, new_story: Callable[[], JobStory]) -> None:
    error, crash, leave = new_story(), new_story(), new_story()
    error.launch("toy.fail", on=DEBUG)
    crash.launch("toy.fail", how="segv", on=DEBUG)
    leave.launch("toy.fail", how="exit", on=DEBUG)
    error.expect_outcome("failed").expect_reason("the toy is broken").expect_last_event("failed")
    crash.expect_outcome("died").expect_reason("SIGSEGV")
    leave.expect_outcome("died").expect_reason("status 7").expect_log_tail("about to fail by exit")


def test_an_environment_s_own_interpreter_runs_on_the_node(slurm: SlurmLab, story: JobStory, tmp_path: Path) -> None:
    python = tmp_path / "my python"
    python.write_text(f'#!/bin/sh\necho "$SLURMD_NODENAME" > "{tmp_path}/ran on"\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    story.launch("toy.count", command=(str(python),), environment="mine", on=DEBUG).expect_outcome("finished")
    assert (tmp_path / "ran on").read_text().strip() in ("n1", "n2")


def test_a_held_job_of_a_named_executor_tells_so_and_runs_when_released(slurm: SlurmLab, story: JobStory) -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text(
        '[executors.quiet]\nkind = "slurm"\npartition = "debug"\npoll = 0.3\noptions = ["--hold"]\n'
    )
    story.launch("toy.count", on="quiet")
    until(lambda: "held by its user: scontrol release" in story.now.waits_for, f"last: {story.now}")
    assert (story.now.state, story.now.on) == ("queued", "quiet")
    slurm.call("scontrol", "release", story.now.place)
    story.expect_outcome("finished")


def test_a_job_is_cancelled_while_it_waits(slurm: SlurmLab, story: JobStory) -> None:
    story.launch("toy.count", on="slurm:closed,poll=0.3")
    until(lambda: story.now.waits_for == "its partition is down", f"last: {story.now}")
    began = time.monotonic()
    story.cancel().expect_outcome("cancelled").expect_last_event("cancelled")
    assert time.monotonic() - began < 8
    assert not slurm.call("squeue", "-h").stdout.strip()


def test_a_running_job_is_cancelled_with_its_grace_and_leaves_nothing(
    slurm: SlurmLab, new_story: Callable[[], JobStory]
) -> None:
    gentle, stubborn = new_story(), new_story()
    gentle.launch("toy.count", to=5000, on=DEBUG)
    stubborn.launch("toy.count", to=5000, stubborn=True, stray=True, grace=0.5, on=DEBUG)
    workers = [each.until(progress=1).child for each in (gentle, stubborn)]
    for each in (gentle, stubborn):
        request_cancel(each.job)
    gentle.expect_outcome("cancelled").expect_reason("stopped on request").expect_last_event("cancelled")
    stubborn.expect_outcome("cancelled").expect_reason("killed after 500 ms of grace")
    workers.append(int((stubborn.job.path / "artifacts" / "stray").read_text()))
    until(lambda: all(map(gone, workers)), "a process of a cancelled job goes on")


def test_a_killed_keeper_is_followed_by_another_that_loses_nothing(
    slurm: SlurmLab,
    story: JobStory,
    kill_keeper: Callable[[JobDirectory], None],
    counted_once: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story.launch("toy.count", to=100, on=DEBUG).until(progress=5)
    kill_keeper(story.job)
    assert story.now.orphan
    assert story.now.state == "running"
    monkeypatch.delenv("SLURM_CONF")  # who looks at jobs need not be who asked for them
    assert adopt([story.job]) == 1
    assert adopt([story.job]) == 0, "its new keeper holds the lock"
    assert not story.now.orphan
    story.expect_outcome("finished")
    counted_once(story.job, 100)


def test_a_keeper_killed_while_it_submitted_leaves_one_submission(
    slurm: SlurmLab, story: JobStory, kill_keeper: Callable[[JobDirectory], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("SQUEUE_PARTITION", "SQUEUE_ACCOUNT", "SINFO_PARTITION", "SCANCEL_PARTITION", "SBATCH_PARTITION")
    for name in options:
        monkeypatch.setenv(name, "urgent")  # of a person who looks at other jobs
    story.launch("toy.count", on="slurm:closed,poll=0.3")
    until(lambda: bool(story.now.place), "it was not submitted")
    kill_keeper(story.job)
    told = placement_of(story.job)
    assert told is not None
    story.job.write("executor.json", {**(story.job.read("executor.json") or {}), "id": ""})  # as if it was never noted
    adopt([story.job])
    until(lambda: bool(story.now.place), "the new keeper found nothing")
    assert placement_of(story.job) == told
    for name in options:
        monkeypatch.delenv(name)
    assert len(slurm.call("squeue", "-h", "--array").stdout.splitlines()) == 1
    story.cancel().expect_outcome("cancelled")
    assert not slurm.call("squeue", "-h").stdout.strip()


def test_no_task_of_an_array_is_overlooked_however_long_its_numbers_are(slurm: SlurmLab) -> None:
    for numbers in (range(0, 180, 2), [number for number in range(200) if number % 11 in (0, 3, 4, 9)]):
        words = ("-p", "closed", "-o", "/dev/null", f"--array={','.join(map(str, numbers))}", "--wrap=true")
        array = slurm.call("sbatch", "--parsable", *words).stdout.strip()
        executor = executor_of(parse_on("slurm:closed"))
        assert isinstance(executor, Slurm)
        assert set(executor._tasks(array)) == {f"{array}_{number}" for number in numbers}


def test_a_job_whose_executor_json_is_damaged_goes_on_without_a_keeper_and_is_cancelled(
    slurm: SlurmLab, story: JobStory, kill_keeper: Callable[[JobDirectory], None]
) -> None:
    worker = story.launch("toy.count", to=5000, on=DEBUG).until(progress=1).child
    until(lambda: " on n" in story.now.place, "its node is not known")
    kill_keeper(story.job)
    (story.job.path / "executor.json").write_text("{")
    assert adopt([story.job]) == 0
    assert (story.now.state, story.now.unled) == ("running", True)
    assert "end it there by hand" in story.now.trouble
    story.cancel().expect_outcome("cancelled").expect_last_event("cancelled")
    assert gone(worker)


def test_a_suspended_job_says_so_and_can_be_cancelled(slurm: SlurmLab, story: JobStory) -> None:
    story.launch("toy.count", to=5000, on=DEBUG).until(progress=1)
    until(lambda: " on n" in story.now.place, "its node is not known")
    worker, name = story.child, story.now.place.partition(" ")[0]
    slurm.call("scontrol", "suspend", name)
    until(lambda: f"scontrol resume {name} lets it go on" in story.now.trouble, f"last: {story.now}")
    assert story.now.state == "running"
    slurm.call("scontrol", "resume", name)
    until(lambda: not story.now.trouble, f"last: {story.now}")
    slurm.call("scontrol", "suspend", name)
    story.cancel().expect_outcome("cancelled").expect_reason("stopped on request")
    assert gone(worker)


def test_a_job_whose_folder_is_removed_is_ended_and_the_others_of_its_batch_are_not(
    slurm: SlurmLab, root: Path
) -> None:
    requests = [JobRequest(action="toy.count", params={"to": to}, on=DEBUG) for to in (5000, 300)]
    removed, other = launch_many(root, requests)
    ran = wait_until(removed, lambda s: s.state == "running", timeout=30)
    shutil.rmtree(removed.path)
    until(lambda: gone(ran.pid), "its worker goes on")
    assert wait_until(other, lambda s: s.state.over, timeout=40).state == "finished"
    until(lambda: not other.alive(), "the keeper stays")
    assert not removed.path.exists()
    until(lambda: not slurm.call("squeue", "-h").stdout.strip(), "one of them stays in the queue")


def test_a_jobs_folder_with_a_backslash_and_a_per_cent_sign_serves(
    slurm: SlurmLab, toy_actions: Path, tmp_path: Path
) -> None:
    story = JobStory(tmp_path / "back\\slash %a 'q'")
    story.launch("toy.count", on=DEBUG).expect_outcome("finished")
    assert story.job.log.read_text().endswith("counted 3\n")


def test_from_a_folder_that_was_removed_nothing_is_launched_and_slurm_is_not_blamed(
    slurm: SlurmLab, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    executor_of(parse_on(DEBUG)).refuse([Need()])
    with pytest.raises(UsageError, match="the current folder is gone"):
        launch_many(root, [JobRequest(action="toy.count", params={}, on=DEBUG)])


def test_a_controller_that_is_down_is_told_and_waited_for(slurm: SlurmLab, new_story: Callable[[], JobStory]) -> None:
    running, late = new_story(), new_story()
    running.launch("toy.count", to=5000, on=DEBUG).until(progress=1)
    slurm.stop_controller()
    late.launch("toy.count", on=DEBUG)  # nobody can say whether it could run: no refusal
    for each in (running, late):
        until(lambda each=each: "slurmctld" in each.now.trouble, f"last: {each.now}")  # type: ignore[misc]
    assert running.now.state == "running"
    slurm.start_controller()
    late.expect_outcome("finished")
    until(lambda: running.now.trouble == "", f"last: {running.now}")
    numbers = running.now.series["number"]
    assert numbers.values == tuple(float(n) for n in range(1, numbers.count + 1)), "its events were disturbed"
    running.cancel().expect_outcome("cancelled")


def test_a_killed_slurmd_does_not_disturb_the_job_on_its_node(
    slurm: SlurmLab, story: JobStory, counted_once: Callable[..., None]
) -> None:
    story.launch("toy.count", to=80, on=DEBUG).until(progress=1)
    until(lambda: " on n" in story.now.place, "its node is not known")
    slurm.kill_slurmd(story.now.place[-2:])
    story.expect_outcome("finished")
    counted_once(story.job, 80)


def test_a_lost_node_begins_a_job_again_elsewhere_and_ends_one_that_is_not_to_be(
    slurm: SlurmLab, new_story: Callable[[], JobStory]
) -> None:
    again, once = new_story(), new_story()
    again.launch("toy.count", to=200, on=DEBUG).until(progress=1)
    until(lambda: " on n" in again.now.place, "its node is not known")
    lost = again.now.place[-2:]
    gpu = {"n1": "a100", "n2": "h100"}[lost]
    once.launch("toy.count", to=2000, on=f"{DEBUG},requeue=false,gres=gpu:{gpu}:1").until(progress=1)
    until(lambda: once.now.place.endswith(lost), f"last: {once.now}")
    slurm.kill_node(lost)
    once.expect_outcome("died").expect_reason(f"node {lost} was lost").expect_last_event("died")
    until(lambda: "requeued" in kinds(again.job), f"last: {again.now}")
    slurm.hurry()
    again.expect_outcome("finished").expect_last_event("finished")
    assert f"node {lost} was lost" in reason_of(again)
    assert again.now.place[-2:] != lost
    assert again.now.series["number"].count == 200, "figures of the first attempt do not count"


def test_a_preempted_job_is_begun_again_and_says_why(slurm: SlurmLab, new_story: Callable[[], JobStory]) -> None:
    first, second = new_story(), new_story()
    first.launch("toy.count", to=100, on=f"{DEBUG},gres=gpu:h100:1").until(progress=1)
    until(lambda: first.now.place.endswith("n2"), "its node is not known")
    slurm.linger()  # for so long it is told to complete, and counted as begun again
    second.launch("toy.count", to=10, on="slurm:urgent,poll=0.3,gres=gpu:h100:1")
    second.expect_outcome("finished")
    until(lambda: "requeued" in kinds(first.job), f"last: {first.now}")
    slurm.hurry()
    first.expect_outcome("finished").expect_last_event("finished")
    assert "took it from node n2: for a job that goes before it" in reason_of(first)


def test_scancel_from_outside_is_told_as_such(slurm: SlurmLab, story: JobStory) -> None:
    story.launch("toy.count", to=2000, on=DEBUG).until(progress=1)
    slurm.call("scancel", story.now.place.partition(" ")[0])
    story.expect_outcome("cancelled").expect_reason("outside hfbench")


def test_nodes_a_controller_has_just_not_heard_of_are_asked_for_again_before_that_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in for sbatch: no slurmctld is in that state when it is wanted."""
    tries, refusal = tmp_path / "tries", "Requested node configuration is not available"
    (tmp_path / "sinfo").write_text("#!/bin/sh\necho debug\n")
    (tmp_path / "sbatch").write_text(
        f"#!/bin/sh\necho >> {tries}\n[ $(wc -l < {tries}) -gt $LACKING ] && exit 0\n"
        f"echo 'allocation failure: {refusal}' >&2\nexit 1\n"
    )
    for name in ("sinfo", "sbatch"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("hfbench.jobs.executors.slurm.AGAIN", (0.01, 0.01))
    executor = executor_of(parse_on(DEBUG))
    monkeypatch.setenv("LACKING", "2")
    executor.refuse([Need()])
    assert len(tries.read_text()) == 3
    monkeypatch.setenv("LACKING", "9")
    tries.unlink()
    with pytest.raises(UsageError, match=refusal):
        executor.refuse([Need()])
    assert len(tries.read_text()) == 3
