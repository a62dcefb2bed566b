"""Reads the events of a job as they are appended, whole lines only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Event, from_line
from hfbench.jobs.files import open_regular

CHUNK = 1 << 20
LONGEST_LINE = 16 << 20
"""Bytes without an end of line after which they are foreign: no event is that long."""


class EventTail:
    """Remembers how far it has read. A torn last line waits for its end; foreign lines are skipped and counted."""

    def __init__(self, job: JobDirectory) -> None:
        self.job = job
        self.offset = 0
        self.skipped = 0

    def read(self) -> Iterator[Event]:
        """The events appended since the last call; none while the file is absent."""
        try:
            fd = open_regular(self.job.events)
        except OSError:
            return
        torn = b""
        try:
            while chunk := os.pread(fd, CHUNK, self.offset + len(torn)):
                *lines, torn = (torn + chunk).split(b"\n")
                for line in lines:
                    self.offset += len(line) + 1  # whole lines only: a writer may still cut a torn one off
                    event = from_line(line) if line else None
                    if event is not None:
                        yield event
                    elif line:
                        self.skipped += 1
                if len(torn) > LONGEST_LINE:
                    self.offset, torn = self.offset + len(torn), b""
                    self.skipped += 1
        finally:
            os.close(fd)


def read_at(path: Path, offset: int) -> bytes:
    """At most CHUNK bytes of a file from there on; none at its end, or while it is absent."""
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(offset)
            return file.read(CHUNK)
    except OSError:
        return b""


def read_events(job: JobDirectory) -> list[Event]:
    """All events of a job so far."""
    return list(EventTail(job).read())


def has_final_event(job: JobDirectory) -> bool:
    """True when the job's story has an end."""
    return any(event.final for event in EventTail(job).read())


def log_tail(job: JobDirectory, lines: int = 20, most_bytes: int = 64 * 1024) -> list[str]:
    """The last lines of the worker's output, undecodable bytes kept as escapes."""
    try:
        with open(open_regular(job.log), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most_bytes))
            data = file.read()
    except OSError:
        return []
    # A progress bar redraws its line with \r: only what it shows last is worth a line.
    text = data.decode("utf-8", "surrogateescape")
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n") if line.strip()][-lines:]
