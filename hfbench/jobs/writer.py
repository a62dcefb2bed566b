"""Appends events to a job's log, and still does so when the disk is full."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import ClassVar

from hfbench.errors import HfbenchError
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Event, to_line

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Neither a link is followed nor a pipe waited for: the folder may have been filled by anybody."""


class DiskFull(HfbenchError):
    """The job's disk has no room for another event."""

    REMEDY: ClassVar[str] = "free some space and run the job again"


class EventWriter:
    """Appends whole lines to events.jsonl. Only the process that holds the job's lock may write."""

    def __init__(self, job: JobDirectory) -> None:
        self.job = job
        self._fd = os.open(job.events, FLAGS, 0o644)

    def __call__(self, event: Event) -> None:
        """Append one event; DiskFull when there is no room for it, after which a final event still finds some."""
        line = to_line(event)
        if self._append(line):
            return
        if not event.final:
            raise DiskFull("the disk is full", where=self.job.path, remedy=DiskFull.REMEDY)
        with contextlib.suppress(OSError):
            self.job.reserve.unlink()
        self._append(line)

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Make what was written durable and let go of the file."""
        with contextlib.suppress(OSError):
            os.fsync(self._fd)
        os.close(self._fd)

    def _append(self, line: bytes) -> bool:
        """True when all of the line is in the file; a part that did not fit is cut off again."""
        size = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, line) == len(line):
                return True
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        with contextlib.suppress(OSError):
            os.truncate(self.job.events, size)
        return False


def write_final(job: JobDirectory, event: Event) -> None:
    """Append a last event to a job whose worker is gone; the caller holds its lock."""
    with EventWriter(job) as writer:
        writer(event)
