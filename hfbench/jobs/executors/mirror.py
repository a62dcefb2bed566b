"""Copies what a worker on another disk writes into the job's folder here: every event once, the last one last."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Placed, Requeued, Trouble, Waiting, from_line
from hfbench.jobs.files import open_regular

OF_KEEPERS = frozenset(each.kind for each in (Placed, Waiting, Requeued, Trouble))
"""Events that a keeper adds to those of the worker."""


class Mirror:
    """The files of one job whose worker writes elsewhere. Only the keeper, which holds the job's lock, has one.

    How far the far files were read is not kept apart: it is what lies here, so that no kill can make the two disagree.
    """

    def __init__(self, job: JobDirectory, log_base: int = 0) -> None:
        """`log_base` is the size output.log had here when the present attempt began (`Placement.log_base`)."""
        self.job = job
        self.events = _of_the_worker(job)
        """Bytes of the far events.jsonl of the present attempt that are here: ask for what comes after."""
        self.log = job.log.stat().st_size - log_base if job.log.exists() else 0
        """Bytes of the far output.log that are here."""
        self.over = False
        """True when the last event is here."""

    def add_log(self, data: bytes) -> None:
        """Append what follows in the far output.log."""
        self._write(self.job.log, data)
        self.log += len(data)

    def add_events(self, data: bytes, bring_result: Callable[[], object]) -> None:
        """Append whole lines that follow in the far events.jsonl; before the last event, `bring_result()` is called.

        When that raises, the last event is not here yet and will be asked for again. Nothing is kept of a job whose
        folder here was removed.
        """
        *lines, torn = data.split(b"\n")
        assert not torn, "a far side sends whole lines"
        before, last = b"", b""
        for line in lines:
            event = from_line(line)
            if event is not None and event.final:
                last = line + b"\n"
                break
            before += line + b"\n"
        self._append(before)
        if last:
            if self.job.path.is_dir():
                bring_result()
            self._append(last)
            self.over = True

    def _append(self, lines: bytes) -> None:
        if lines:
            self._write(self.job.events, lines)
        self.events += len(lines)

    def _write(self, path: Path, data: bytes) -> None:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return
        with open(fd, "wb") as file:
            file.write(data)


def _of_the_worker(job: JobDirectory) -> int:
    """Bytes of the events here that came from the worker; what a killed keeper left of a line is cut off."""
    try:
        with open(open_regular(job.events), "rb") as file:
            data = file.read()
    except OSError:
        return 0
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(job.events, whole)
    count = 0
    for line in data[:whole].splitlines(keepends=True):
        kind = _kind(line)
        count = 0 if kind == Requeued.kind else count + len(line) * (kind not in OF_KEEPERS)
    return count


def _kind(line: bytes) -> str:
    try:
        return str(json.loads(line)["kind"])
    except (ValueError, LookupError, TypeError):
        return ""
