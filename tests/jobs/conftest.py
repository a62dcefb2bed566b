"""Stories about jobs, and whatever they left running taken away again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from story import JobStory

from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.process import signal_group
from hfbench.jobs.snapshot import read_job
from hfbench.paths import jobs_root


@pytest.fixture
def root(home: Path) -> Path:
    """The jobs folder of the test."""
    return jobs_root()


@pytest.fixture
def new_story(root: Path, toy_actions: Path) -> Iterator[Callable[[], JobStory]]:
    """Begin another story in the same jobs folder; nothing it starts outlives the test."""
    yield lambda: JobStory(root)
    with suppress(Exception):
        for each in job_ids(root):
            snapshot = read_job(JobDirectory(root / each))
            if not snapshot.state.over:
                signal_group(snapshot.pid, snapshot.ticks, signal.SIGKILL)


@pytest.fixture
def story(new_story: Callable[[], JobStory]) -> JobStory:
    """The story of one job."""
    return new_story()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a tmpfs with these options; for the tests that need a real full or read-only disk."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=True)
