"""How far a download is: bytes in all and by file, the rate of the last seconds, and the time that is left."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque

from hfbench.hub.facts import HubFile
from hfbench.jobs.run import Run
from hfbench.units import MIB

EVERY = 0.5
"""Seconds between two reports."""
WINDOW = 10.0
"""Seconds over which the rate is taken."""
FILES = "files.json"
"""In the folder of the job: each file that was begun, with its bytes and how many of them are there."""


class Gauge:
    """Counts what comes in; `came` is for any thread, the rest for the one that waits."""

    def __init__(self, run: Run, total: int) -> None:
        self.total = total
        self._run = run
        self._lock = threading.Lock()
        self._done = self._fetched = 0
        self._files: dict[str, list[int]] = {}
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._next = 0.0

    @property
    def fetched(self) -> int:
        """Bytes that came over the network."""
        return self._fetched

    def came(self, file: HubFile, count: int) -> None:
        """Note bytes that were just fetched."""
        with self._lock:
            self._done += count
            self._fetched += count
            self._files[file.path][0] += count

    def take_up(self, file: HubFile, count: int) -> None:
        """A file begins, with bytes that are there already; a negative count takes some back."""
        with self._lock:
            self._done += count
            self._files.setdefault(file.path, [0, file.size])[0] += count

    def rate(self) -> float:
        """Bytes a second over the last seconds."""
        (began, before), now = self._marks[0], time.monotonic()
        return (self._fetched - before) / (now - began) if now > began else 0.0

    def report(self, *, last: bool = False) -> None:
        """Tell progress, rate and time left, if it is time."""
        now = time.monotonic()
        if now < self._next and not last:
            return
        self._next = now + EVERY
        self._marks.append((now, self._fetched))
        while now - self._marks[0][0] > WINDOW and len(self._marks) > 2:
            self._marks.popleft()
        self._run.progress("pull", self._done, self.total, "B")
        self._write_files()
        if (rate := self.rate()) > 0 and not last:
            self._run.metric("rate", rate / MIB, "MiB/s")
            self._run.metric("eta", max(0, self.total - self._done) / rate, "s")

    def _write_files(self) -> None:
        """By rename, so that whoever shows it never meets half of it; without a job nobody does."""
        if self._run.directory is None:
            return
        with self._lock:
            told = [{"path": path, "done": done, "bytes": size} for path, (done, size) in self._files.items()]
        new = self._run.directory / f"{FILES}.new"
        with contextlib.suppress(OSError):
            new.write_text(json.dumps(told))
            os.replace(new, self._run.directory / FILES)
