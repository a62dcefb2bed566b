"""Jobs on a second box, by a real sshd: what comes over, what is refused, what a broken connection costs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from story import JobStory, gone, until

import hfbench
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.cancel import cancel, request_cancel
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.follow import snapshots
from hfbench.jobs.launch import JobRequest, adopt, launch

if TYPE_CHECKING:
    from ssh_lab import SshLab


def far_folder(box: SshLab, story: JobStory) -> Path:
    """The job's folder on the second box."""
    return box.far_home / "far-jobs" / story.job.id


def python_that(tmp_path: Path, does: str) -> str:
    """An interpreter with something before its words."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    return str(python)


def test_events_output_result_and_artifacts_come_over_and_nothing_stays_there(
    box: SshLab, story: JobStory, there: str, counted_once: Callable[..., None]
) -> None:
    snapshot = story.launch("toy.count", to=30, stray=True, on=there).end()
    assert snapshot.state == "finished"
    assert snapshot.result == {"count": 30, "doubled": 60.0}
    assert (story.job.path / "artifacts" / "stray").read_text().isdecimal()
    assert story.job.log.read_text().splitlines()[-1] == "counted 30"
    assert (story.job.read("environment.json") or {}).get("host")
    counted_once(story.job, 30)
    until(lambda: not far_folder(box, story).exists(), "the far folder stays")


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_what_cannot_be_brought_over_is_told_and_holds_up_neither_the_rest_nor_the_result(
    box: SshLab,
    new_story: Callable[[], JobStory],
    there: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    if way == "tar":
        monkeypatch.setenv("PATH", str(box.bin))
    whole, torn = new_story().launch("toy.make", odd=True, on=there), new_story()
    torn.launch("toy.make", until=str(tmp_path / "gate"), on=there).until("running")
    (torn.job.path / "artifacts" / "deep" / "zeros.bin" / "in the way").mkdir(parents=True)
    (tmp_path / "gate").touch()
    whole.expect_outcome("finished")
    assert (whole.job.path / "artifacts" / "deep" / "zeros.bin").stat().st_size == 1000
    assert sorted(each.name for each in (whole.job.path / "artifacts").iterdir()) == ["deep"]
    told = [line.rpartition(": ") for line in whole.job.log.read_text().splitlines()]
    assert sorted(name for _, _, name in told) == ["artifacts/link", "artifacts/pipe"]
    assert {what for what, _, _ in told} == {"hfbench: not brought over, as it is no plain file"}
    until(lambda: not far_folder(box, whole).exists(), "the far folder stays")
    torn.expect_outcome("finished")
    assert torn.now.result
    assert f"hfbench: what did not come is left in box:{far_folder(box, torn)}" in torn.job.log.read_text()
    assert (far_folder(box, torn) / "artifacts" / "deep" / "zeros.bin").exists()


@pytest.mark.parametrize(
    ("host", "told", "remedy"),
    [
        ("box-password", "asks for a password", "ssh-copy-id box-password"),
        ("box-stranger", "key of box-stranger is not known", "check its fingerprint: ssh box-stranger"),
        ("nobody.invalid", "Could not resolve hostname", "check its name"),
    ],
)
def test_a_host_that_would_ask_is_refused_at_once(box: SshLab, root: Path, host: str, told: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        launch(root, JobRequest(action="toy.count", params={}, on=f"ssh:{host}"))
    assert remedy in refused.value.remedy
    assert job_ids(root) == []


def test_a_far_side_without_this_hfbench_is_refused_with_what_to_install(
    box: SshLab, root: Path, tmp_path: Path
) -> None:
    fake = tmp_path / "fake" / "hfbench"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text('__version__ = "9.9"\n')
    faults = {
        f'exec {sys.executable} -S -E "$@"': f"has no hfbench. Install it there: .* hfbench=={hfbench.__version__}",
        f'PYTHONPATH={fake.parent} exec {sys.executable} "$@"': f"hfbench is 9.9 over there, and {hfbench.__version__}",
        "exec /nowhere": "cannot be started over there",
    }
    for does, told in faults.items():
        with pytest.raises(MissingError, match=told):
            launch(root, JobRequest(action="toy.count", params={}, on=f"ssh:box,python={python_that(tmp_path, does)}"))


def test_what_a_login_prints_is_no_answer(box: SshLab, story: JobStory, tmp_path: Path) -> None:
    python = python_that(tmp_path, f'echo "Welcome to this box! {{"; echo; exec {sys.executable} "$@"')
    story.launch("toy.count", on=f"ssh:box,python={python}").expect_outcome("finished")


def test_a_cut_connection_is_taken_up_again_and_no_event_is_lost_or_told_twice(
    box: SshLab, story: JobStory, there: str, counted_once: Callable[..., None]
) -> None:
    story.launch("toy.count", to=200, on=there).until(progress=5)
    for progress in (30, 80):
        box.cut()
        story.until(progress=progress)
    story.expect_outcome("finished")
    assert "trouble" in [event.kind for event in story.events]
    counted_once(story.job, 200)
    assert story.job.log.read_text().splitlines() == [f"counted {number}" for number in range(1, 201)]


def test_a_box_off_the_network_is_waited_for_and_a_cancel_meanwhile_reaches_it(
    box: SshLab, story: JobStory, there: str
) -> None:
    story.launch("toy.count", to=3000, on=there).until(progress=1)
    worker = story.child
    box.stop()
    until(lambda: "cannot be reached" in story.now.trouble, f"last: {story.now}")
    assert story.now.state == "running"
    request_cancel(story.job)
    assert story.now.state == "cancelling"
    box.start()
    story.expect_outcome("cancelled").expect_reason("stopped on request").expect_last_event("cancelled")
    assert gone(worker)


def test_a_cancel_that_cannot_reach_the_box_says_so_and_leaves_the_job_to_be_cancelled(
    box: SshLab, story: JobStory, there: str, hfbench: Any
) -> None:
    story.launch("toy.count", to=3000, on=there).until(progress=1)
    box.stop()
    until(lambda: "cannot be reached" in story.now.trouble, f"last: {story.now}")
    began = time.monotonic()
    done = hfbench("jobs", "cancel", story.job.short_id)
    assert time.monotonic() < began + 20
    assert done.returncode == 1
    assert "box cannot be reached" in done.stdout
    assert "left to be cancelled as soon as that is over" in done.stdout
    box.start()
    story.expect_outcome("cancelled")


def test_patience_has_an_end_that_names_what_it_bore(box: SshLab, story: JobStory) -> None:
    story.launch("toy.count", on="ssh:box-closed,poll=0.3,patience=1.5")
    story.expect_outcome("died").expect_reason("given up after").expect_reason("box-closed cannot be reached")


def test_a_wait_for_a_box_is_told_where_no_line_can_be_drawn(box: SshLab, hfbench: Any) -> None:
    done = hfbench("toy", "count", "--on", "ssh:box-closed,poll=0.3,patience=1.5")
    first = done.stderr.splitlines()[0]
    assert first.startswith("hfbench: box-closed cannot be reached: ")
    assert done.stderr.count(first) == 1


def test_a_killed_keeper_is_followed_by_another_that_loses_nothing(
    box: SshLab,
    story: JobStory,
    there: str,
    kill_keeper: Callable[[JobDirectory], None],
    counted_once: Callable[..., None],
) -> None:
    story.launch("toy.count", to=150, on=there).until(progress=5)
    kill_keeper(story.job)
    with story.job.events.open("ab") as file:
        file.write(b'{"v":1,"kind":"metric","at":17')  # as if it was killed amid a line
    assert story.now.orphan
    assert adopt([story.job]) == 1
    story.expect_outcome("finished")
    counted_once(story.job, 150)


def test_whoever_follows_a_job_gives_it_another_keeper(
    box: SshLab, story: JobStory, there: str, kill_keeper: Callable[[JobDirectory], None], hfbench: Any
) -> None:
    story.launch("toy.count", to=60, on=there).until(progress=2)
    kill_keeper(story.job)
    done = hfbench("jobs", "logs", "-f", story.job.short_id, timeout=60)
    assert done.stdout.splitlines()[-1] == "counted 60"
    story.launch("toy.count", to=150, on=there).until(progress=2)
    kill_keeper(story.job)
    told = [snapshot.orphan for snapshot in snapshots(story.job)]
    assert told[0], "it had no keeper"
    assert story.now.state == "finished"


def test_a_cancel_reaches_the_far_process_group_and_kills_what_does_not_listen(
    box: SshLab, story: JobStory, there: str
) -> None:
    story.launch("toy.count", to=3000, stubborn=True, stray=True, grace=0.5, on=there).until(progress=1)
    stray = int((far_folder(box, story) / "artifacts" / "stray").read_text())
    worker = story.child
    story.cancel().expect_outcome("cancelled").expect_reason("killed after 500 ms of grace")
    until(lambda: gone(worker) and gone(stray), "a far process goes on")


@pytest.mark.parametrize(
    ("boot", "told"), [("", "is gone and left no word"), ("another", "was restarted while it ran")]
)
def test_a_far_worker_that_vanished_is_told_and_a_restart_of_its_machine_named(
    box: SshLab, story: JobStory, there: str, boot: str, told: str
) -> None:
    story.launch("toy.count", to=3000, on=there).until(progress=1)
    if boot:
        (far_folder(box, story) / "boot").write_text(boot)
    story.kill(signal.SIGKILL, supervisor=True)
    story.expect_outcome("died").expect_reason(told).expect_log_tail("counted 1")


def test_a_job_whose_far_folder_is_removed_ends_with_its_processes_and_is_not_begun_again(
    box: SshLab, new_story: Callable[[], JobStory], there: str
) -> None:
    stories = [new_story().launch("toy.count", to=3000, lease=False, on=there) for _ in range(2)]
    processes = [each for story in stories for each in (story.until(progress=1).child, story.now.pid)]
    for story in stories:
        shutil.rmtree(far_folder(box, story))
    began = time.monotonic()
    snapshot = cancel(stories[0].job)
    assert (snapshot.state, time.monotonic() < began + 15) == ("died", True)
    box.cut()
    for story in stories:
        story.expect_outcome("died").expect_reason("was removed while it ran").expect_last_event("died")
        assert not far_folder(box, story).exists()
    until(lambda: all(map(gone, processes)), "a far process goes on", patience=10)


def test_the_word_of_a_far_worker_that_failed_stands(box: SshLab, story: JobStory, there: str) -> None:
    story.launch("toy.fail", on=there).expect_outcome("failed").expect_reason("the toy is broken")


def test_an_unknown_action_over_there_fails_with_a_sentence(box: SshLab, story: JobStory, there: str) -> None:
    story.launch("toy.nothing", on=there).expect_outcome("failed").expect_reason("toy.nothing")


def test_a_local_environment_cannot_be_asked_for_over_there(box: SshLab, hfbench: Any, there: str) -> None:
    done = hfbench("toy", "count", "--on", there, "--in", "mine")
    assert done.returncode == 2
    assert 'kind = "ssh"' in done.stderr


def test_the_command_line_follows_a_far_job_to_its_result(box: SshLab, hfbench: Any, there: str) -> None:
    done = hfbench("toy", "count", "--to", "4", "--json", "--on", there, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    assert '"count": 4' in done.stdout


def test_an_error_of_ssh_is_one_of_hfbench(box: SshLab) -> None:
    from hfbench.jobs.executors.ssh_client import meaning

    for said in ("Permission denied (publickey).", "Connection reset by peer", "WARNING: IDENTIFICATION HAS CHANGED"):
        error = meaning("box", 255, said)
        assert isinstance(error, HfbenchError)
        assert "box" in str(error)
