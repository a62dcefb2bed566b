"""The story of one real job, told by a test: launch it, let something happen to it, look at how it ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Event
from hfbench.jobs.follow import wait_until
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import JobSnapshot, read_job
from hfbench.jobs.tail import read_events

PATIENCE = 60.0
"""Seconds after which a story that does not move on is a failed test."""


class JobStory:
    """Each step returns the story itself, so that a test reads as one sentence."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._job: JobDirectory | None = None

    @classmethod
    def of(cls, root: Path, job_id: str) -> JobStory:
        """The story of a job that something else has launched."""
        story = cls(root)
        story._job = JobDirectory(root / job_id)
        return story

    @property
    def job(self) -> JobDirectory:
        """The job this story is about."""
        assert self._job is not None, "launch comes first"
        return self._job

    @property
    def now(self) -> JobSnapshot:
        """The job as anybody sees it."""
        return read_job(self.job)

    @property
    def events(self) -> list[Event]:
        """All that was written so far."""
        return read_events(self.job)

    @property
    def child(self) -> int:
        """The process that does the work, the child of the supervisor."""
        children = Path(f"/proc/{self.now.pid}/task/{self.now.pid}/children").read_text().split()
        return int(children[0])

    def launch(self, action: str, *, grace: float = 10.0, **told: Any) -> JobStory:
        """Start a job; `lease`, `timeout`, `command` and `on` are the request's, all else are the action's fields."""
        of_request = {
            name: told.pop(name)
            for name in ("lease", "timeout", "command", "label", "environment", "why", "on", "gpus")
            if name in told
        }
        self._job = launch(self.root, JobRequest(action=action, params=told, grace=grace, **of_request))
        return self

    def until(self, state: str = "running", *, progress: float = 0) -> JobStory:
        """Wait for a state, and for a number of units done."""

        def reached(snapshot: JobSnapshot) -> bool:
            return snapshot.state == state and (snapshot.progress.done if snapshot.progress else 0) >= progress

        last = wait_until(self.job, reached, timeout=PATIENCE)
        assert reached(last), f"never {state} with {progress} done; last: {last}"
        return self

    def kill(self, signum: signal.Signals, *, supervisor: bool = False) -> JobStory:
        """Send a signal to the working process, or to its supervisor."""
        os.kill(self.now.pid if supervisor else self.child, signum)
        return self

    def cancel(self) -> JobStory:
        """Stop the job as a person would."""
        cancel(self.job)
        return self

    def end(self) -> JobSnapshot:
        """Wait for the end, also of the worker, and return how the job stands."""
        snapshot = wait_until(self.job, lambda s: s.state.over, timeout=PATIENCE)
        assert snapshot.state.over, f"the job did not end; last: {snapshot}"
        until(lambda: not self.job.alive(), "the worker did not go")
        return snapshot

    def expect_outcome(self, state: str) -> JobStory:
        """The job ends, and in that state."""
        assert self.end().state == state, self.end()
        return self

    def expect_reason(self, contains: str) -> JobStory:
        """The sentence about the end holds these words."""
        assert contains in self.end().sentence(), self.end().sentence()
        return self

    def expect_log_tail(self, contains: str) -> JobStory:
        """The last lines of the worker's output hold these words."""
        assert any(contains in line for line in self.end().tail), self.end().tail
        return self

    def expect_last_event(self, kind: str) -> JobStory:
        """The story has one end, and it is the last event."""
        self.end()
        assert [event.kind for event in self.events if event.final] == [kind]
        assert self.events[-1].kind == kind
        return self


def until(condition: Callable[[], bool], otherwise: str, patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """True when a process has ended, collected or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
