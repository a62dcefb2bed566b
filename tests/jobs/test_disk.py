"""Disks that are full, read-only or not folders at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from story import JobStory

from hfbench.jobs.directory import JobsFolderError
from hfbench.jobs.events import Failed
from hfbench.jobs.history import History
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import State

Mount = Callable[[str], Path]
COUNT = JobRequest(action="toy.count", params={"to": 1})


def fill(disk: Path) -> None:
    """Take every byte that is left, and every page."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    assert os.statvfs(disk).f_bavail == 0


def test_a_job_on_a_disk_that_fills_up_fails_and_says_which_disk(small_disk: Mount, toy_actions: Path) -> None:
    disk = small_disk("size=1m")
    story = JobStory(disk / "jobs").launch("toy.count", to=100_000).until(progress=2)
    fill(disk)
    story.expect_outcome("failed").expect_last_event("failed")
    story.expect_reason(f"{story.job.path}: the disk is full. Free some space")
    assert (story.end().error or {})["where"] == str(story.job.path)


def test_an_action_that_fills_the_disk_itself_is_told_the_same(small_disk: Mount, toy_actions: Path) -> None:
    disk = small_disk("size=1m")
    story = JobStory(disk / "jobs").launch("toy.fail", how="disk")
    story.expect_outcome("failed").expect_reason("the disk is full").expect_last_event("failed")
    assert isinstance(story.events[-1], Failed)


def test_history_goes_on_in_memory_on_a_full_disk(small_disk: Mount, toy_actions: Path) -> None:
    disk = small_disk("size=1m")
    story = JobStory(disk / "jobs").launch("toy.count", to=2)
    story.end()
    history = History(disk / "jobs")
    fill(disk)
    assert [row.state for row in history.rows()] == [State.FINISHED]
    assert [row.state for row in History(disk / "jobs").rows()] == [State.FINISHED]


def test_a_launch_on_a_full_disk_is_one_sentence_and_leaves_nothing(small_disk: Mount, toy_actions: Path) -> None:
    disk = small_disk("size=1m")
    (disk / "jobs").mkdir()
    fill(disk)
    with pytest.raises(JobsFolderError, match=r"cannot be written: No space left on device. Free some space"):
        launch(disk / "jobs", COUNT)
    assert list((disk / "jobs").iterdir()) == []


def test_a_read_only_disk_is_one_sentence_and_its_jobs_can_still_be_seen(
    small_disk: Mount, story: JobStory, root: Path
) -> None:
    import shutil
    import subprocess

    disk = small_disk("size=1m")
    story.launch("toy.count", to=1).end()
    shutil.copytree(root, disk / "jobs", ignore=shutil.ignore_patterns(".index*"))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(JobsFolderError, match="Read-only file system"):
        launch(disk / "jobs", COUNT)
    history = History(disk / "jobs")
    assert [row.state for row in history.rows()] == [State.FINISHED]
    assert history.reindex() == 1


@pytest.mark.parametrize("place", ["file", "file/jobs"])
def test_a_file_in_place_of_the_folder_is_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(JobsFolderError, match="the jobs folder cannot be written") as caught:
        launch(tmp_path / place, COUNT)
    assert caught.value.where == str(tmp_path / place)


@pytest.mark.unprivileged
def test_a_folder_without_permission_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir(mode=0o500)
    with pytest.raises(JobsFolderError, match="Permission denied"):
        launch(tmp_path / "jobs", COUNT)


def test_a_folder_that_is_gone_under_our_feet_is_a_sentence(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hfbench.errors import UsageError

    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    with pytest.raises(UsageError, match="the current folder is gone"):
        launch(root, COUNT)
