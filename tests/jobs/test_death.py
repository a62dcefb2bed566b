"""Killed, cancelled, orphaned: the job always says what happened."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest
from story import JobStory, gone, until

from hfbench.jobs.cancel import StillRunning, remove, request_cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Started
from hfbench.jobs.snapshot import State


def test_killed_worker_is_reported_with_its_signal_and_last_lines(story: JobStory) -> None:
    (
        story.launch("toy.count", to=100_000)
        .until(progress=5)
        .kill(SIGKILL)
        .expect_outcome("died")
        .expect_reason(contains="SIGKILL")
        .expect_log_tail(contains="counted 5")
        .expect_last_event("died")
    )


def test_a_killed_supervisor_takes_its_child_along(story: JobStory) -> None:
    story.launch("toy.count", to=100_000).until(progress=2)
    child = story.child
    story.kill(SIGKILL, supervisor=True).expect_outcome("died").expect_reason("the worker is gone and left no word")
    until(lambda: gone(child), "the child lives on without its supervisor")


def test_cancel_stops_it_and_is_the_last_word(story: JobStory) -> None:
    story.launch("toy.count", to=100_000).until(progress=2).cancel()
    story.expect_outcome("cancelled").expect_reason("stopped on request").expect_last_event("cancelled")


@pytest.mark.parametrize("signum", [SIGTERM, SIGINT])
def test_a_signal_to_the_supervisor_is_a_request_to_stop(story: JobStory, signum: int) -> None:
    story.launch("toy.count", to=100_000).until(progress=2).kill(signum, supervisor=True)  # type: ignore[arg-type]
    story.expect_outcome("cancelled")


def test_a_job_is_cancelled_before_it_has_said_its_process_id(story: JobStory) -> None:
    began = time.monotonic()
    story.launch("toy.count", to=100_000).cancel().expect_outcome("cancelled")
    assert time.monotonic() - began < story.job.grace, "it had to be waited for"


def test_a_request_through_the_file_alone_is_heard(story: JobStory) -> None:
    """That is how a job on another machine is cancelled: no signal reaches it."""
    story.launch("toy.count", to=100_000).until(progress=1)
    story.job.write("cancel.json", {"at": time.time(), "by": "somebody elsewhere"})
    story.expect_outcome("cancelled").expect_last_event("cancelled")


def test_a_stubborn_job_is_killed_after_its_time_of_grace(story: JobStory) -> None:
    story.launch("toy.count", to=100_000, stubborn=True, grace=0.3).until(progress=2).cancel()
    story.expect_outcome("cancelled").expect_reason("killed after 300 ms of grace").expect_last_event("cancelled")


def test_a_job_that_was_asked_and_killed_with_its_supervisor_counts_as_cancelled(story: JobStory) -> None:
    story.launch("toy.count", to=100_000, stubborn=True).until(progress=1)
    request_cancel(story.job)
    assert story.now.state is State.CANCELLING
    story.kill(SIGKILL, supervisor=True).expect_outcome("cancelled").expect_reason("killed on request")
    assert story.end().ended is not None


def test_cancelling_what_is_over_changes_nothing(story: JobStory) -> None:
    story.launch("toy.count", to=1).end()
    assert request_cancel(story.job) is False
    story.cancel().expect_outcome("finished").expect_last_event("finished")
    assert not (story.job.path / "cancel.json").exists()


def test_a_running_job_is_not_removed(story: JobStory) -> None:
    story.launch("toy.count", to=100_000).until(progress=1)
    with pytest.raises(StillRunning, match="hfbench jobs cancel"):
        remove(story.job)
    story.cancel().end()
    remove(story.job)
    assert not story.job.path.exists()


def test_a_job_whose_folder_is_removed_ends_with_all_its_processes(story: JobStory) -> None:
    story.launch("toy.count", to=100_000, stubborn=True, grace=0.2).until(progress=1)
    processes = [story.child, story.now.pid]
    shutil.rmtree(story.job.path)
    until(lambda: all(map(gone, processes)), "nobody can stop it any more", patience=15)
    assert not story.job.path.exists()


def test_a_reused_process_id_is_never_signalled(story: JobStory, tmp_path: Path) -> None:
    """The worker's start time is checked: this test's own process has the pid, but not the ticks."""
    from hfbench.jobs.process import same_process, signal_group, start_ticks

    ticks = start_ticks(os.getpid())
    assert same_process(os.getpid(), ticks)
    assert signal_group(os.getpid(), ticks + 1, SIGKILL) is False
    assert signal_group(0, 0, SIGKILL) is False
    assert signal_group(1, start_ticks(1), SIGKILL) is False


def test_a_worker_lives_apart_from_whoever_started_it(story: JobStory) -> None:
    story.launch("toy.count", to=100_000).until(progress=1)
    pid = story.now.pid
    assert os.getsid(pid) == pid, "its own session"
    for each in (pid, story.child):
        assert os.readlink(f"/proc/{each}/fd/0") == "/dev/null"
        assert {os.readlink(f"/proc/{each}/fd/{n}") for n in (1, 2)} == {str(story.job.log)}
    [started] = [event for event in story.events if isinstance(event, Started)]
    assert (started.pid, started.host) == (pid, socket.gethostname())
    story.cancel().end()


def test_a_worker_leaves_no_zombie_in_the_process_that_started_it(story: JobStory) -> None:
    story.launch("toy.count", to=1).until("finished")
    pid = story.now.pid
    until(lambda: not Path(f"/proc/{pid}").exists(), "nobody collected the exit status")


def test_launching_leaves_no_descriptor_open(new_story: Callable[[], JobStory]) -> None:
    new_story().launch("toy.count", to=1).end()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        new_story().launch("toy.count", to=1).end()
    assert len(os.listdir("/proc/self/fd")) == before


LAUNCHER = """
import sys, time
from pathlib import Path
from hfbench.jobs.launch import JobRequest, launch
job = launch(Path(sys.argv[1]), JobRequest(action="toy.count", params={"to": 60, "pause": 0.05}))
print(job.path, flush=True)
time.sleep(600)
"""


def test_a_job_outlives_the_terminal_that_started_it(root: Path, story: JobStory) -> None:
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", LAUNCHER, str(root)])
    written = b""
    while b"\n" not in written:
        written += os.read(terminal, 4096)
    story._job = JobDirectory(Path(written.decode().splitlines()[0]))
    story.until(progress=1)
    os.close(terminal)  # the kernel hangs up on everybody in that session
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the launcher died with its terminal"
    assert story.now.state is State.RUNNING
    story.expect_outcome("finished")
