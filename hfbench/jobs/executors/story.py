"""What a keeper tells of one job, and how far it has come: the only writer of its events while no worker is one."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace

from hfbench.jobs.directory import GONE, KEPT_LOCK, JobDirectory, held
from hfbench.jobs.events import Event, Trouble
from hfbench.jobs.executors.base import Kept
from hfbench.jobs.tail import EventTail
from hfbench.jobs.writer import EventWriter


class Story:
    """What the keeper tells of one job, and how far it has come."""

    def __init__(self, kept: Kept, lock: int) -> None:
        self.kept, self.lock, self.over = kept, lock, False
        self._tail, self._finished = EventTail(kept.job), False
        self.told_reason = ""
        self.writes = held(kept.job.path / KEPT_LOCK)
        """True while a worker on another machine may append to the same files."""
        self._there_at = time.monotonic()
        self.asked_at, self.killed = 0.0, False
        self.suffers_since = 0.0
        """When its present trouble began; 0 without any."""
        self.ended_at = 0.0
        self.ending: Event | None = None
        """What the executor first said of its end; later it may have forgotten."""

    @property
    def job(self) -> JobDirectory:
        """The job it is about."""
        return self.kept.job

    @property
    def finished(self) -> bool:
        """Whether the job's story has an end; only what is new of it is read."""
        self._finished = self._finished or any(event.final for event in self._tail.read())
        return self._finished

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked it to stop, or removed its folder: nobody could ask any more then."""
        if self.job.path.is_dir():
            self._there_at = time.monotonic()
        return (self.job.path / "cancel.json").exists() or time.monotonic() > self._there_at + GONE

    def tell(self, event: Event) -> None:
        """Append an event, but not while a worker on another machine may: executor.json tells what matters then."""
        if not self.writes and self.job.path.is_dir():
            _end_torn_line(self.job)
            with EventWriter(self.job) as write:
                write(event)

    def place(self, **changed: object) -> None:
        """Keep where the job stands now, for a keeper that takes over."""
        placement = replace(self.kept.placement, **changed)  # type: ignore[arg-type]
        if placement != self.kept.placement:
            self.kept = Kept(self.job, placement)
            if self.job.path.is_dir():
                placement.write(self.job)

    def suffer(self, trouble: str) -> bool:
        """Tell what keeps the executor from knowing more, or that nothing does any longer; True when it is new."""
        if not trouble:
            self.suffers_since = 0.0
        elif not self.suffers_since:
            self.suffers_since = time.monotonic()
        if trouble == self.kept.placement.trouble:
            return False
        self.place(trouble=trouble)
        self.tell(Trouble(reason=trouble))
        return True

    def end(self, event: Event | None = None) -> None:
        """The job is over: with this event, or by the worker's own; its lock is free from now on."""
        self.writes = False
        if event is not None and not self.finished:
            self.tell(event)
        self.over = True
        with contextlib.suppress(OSError):
            os.close(self.lock)


def attempt_of(job: JobDirectory) -> int:
    """Which attempt the worker is that holds the lock of kept workers."""
    try:
        return int((job.path / KEPT_LOCK).read_text() or 0)
    except (OSError, ValueError):
        return 0


def _end_torn_line(job: JobDirectory) -> None:
    """What a lost node has left of a line must not swallow the next one."""
    with contextlib.suppress(OSError), job.events.open("rb+") as file:
        if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
