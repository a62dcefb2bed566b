"""Asks the action `diff` beside its screen: at once in a child process, or with values as a job that is followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError, error_from_parts
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import snapshots
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.jobs.state import State
from hfbench.paths import jobs_root
from hfbench.screens.background import Stopped
from hfbench.screens.diff_child import ask_child
from hfbench.screens.job_text import phases
from hfbench.screens.messages import Latest
from hfbench.widgets.differences import Differences
from hfbench.widgets.progress_text import Phase

if TYPE_CHECKING:
    from hfbench.actions.diff import DiffResult

PACE = 0.2
"""Seconds between two pictures of a job: more often is not read, and over SSH each one costs."""

Post = Callable[[Message], None]


@dataclass
class Compared(Message):
    """The action has answered."""

    result: DiffResult
    differences: Differences


@dataclass
class JobMoved(Latest):
    """How far the job is that compares values; `over` when nothing more comes of it."""

    job: str
    phases: tuple[Phase, ...]
    over: bool = False


@dataclass
class JobLost(Message):
    """The job ended without a result, for the reason told."""

    error: HfbenchError


def ask(values: Mapping[str, object], stopped: Stopped, post: Post) -> None:
    """Compare by headers and files, in a child process."""
    if answer := ask_child({"values": dict(values)}, stopped):
        post(Compared(*answer))


def follow_job(id: str, stopped: Stopped, post: Post) -> None:
    """Tell how far a job is until it is over, and then its result."""
    for snapshot in snapshots(JobDirectory(jobs_root() / id), stop=stopped):
        if snapshot.state.over:
            _tell_end(snapshot, stopped, post)
            return
        post(JobMoved(id, phases(snapshot)))
        time.sleep(PACE)


def follow_running(ids: Sequence[str], values: Mapping[str, object], stopped: Stopped, post: Post) -> None:
    """Follow the first of these jobs that compares the values of the same two models."""
    for id in ids:
        params = JobDirectory(jobs_root() / id).request.get("params")
        if isinstance(params, dict) and params.get("values") and all(params.get(k) == values[k] for k in ("a", "b")):
            follow_job(id, stopped, post)
            return


def _tell_end(snapshot: JobSnapshot, stopped: Stopped, post: Post) -> None:
    if snapshot.state is State.FINISHED:
        if answer := ask_child({"job": str(jobs_root() / snapshot.id)}, stopped):
            post(Compared(*answer))
    elif snapshot.error:
        post(JobLost(error_from_parts(snapshot.error)))
    elif snapshot.state is not State.CANCELLED:
        post(JobLost(HfbenchError(f"the job {snapshot.state}: {snapshot.sentence()}", where=snapshot.short_id)))
    post(JobMoved(snapshot.id, (), over=True))
