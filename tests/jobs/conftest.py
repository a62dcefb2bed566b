"""Stories about jobs, and whatever they left running taken away again."""

from __future__ import annotations

import signal
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
