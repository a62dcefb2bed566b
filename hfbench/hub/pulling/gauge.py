"""How far a download is: bytes in all and by file, the rate of the last seconds, and the time that is left."""

from __future__ import annotations

import threading
import time
from collections import deque

from hfbench.jobs.run import Run

EVERY = 0.5
"""Seconds between two reports."""
WINDOW = 10.0
"""Seconds over which the rate is taken."""
LEAST_NAMED = 32 << 20
"""Bytes of a file that is named in the progress by itself."""


class Gauge:
    """Counts what comes in; `add` is for any thread, the rest for the one that waits."""

    def __init__(self, run: Run, total: int) -> None:
        self._run, self._total = run, total
        self._lock = threading.Lock()
        self._done = self._fetched = 0
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._next = 0.0

    @property
    def fetched(self) -> int:
        """Bytes that came over the network."""
        return self._fetched

    def add(self, count: int, *, fetched: bool = True) -> None:
        """Note bytes that are there: just fetched, or found from an earlier run. A negative count takes some back."""
        with self._lock:
            self._done += count
            self._fetched += count if fetched else 0

    def rate(self) -> float:
        """Bytes a second over the last seconds."""
        (began, before), now = self._marks[0], time.monotonic()
        return (self._fetched - before) / (now - began) if now > began else 0.0

    def report(self, name: str = "", *, last: bool = False) -> None:
        """Tell progress, rate and time left, if it is time."""
        now = time.monotonic()
        if now < self._next and not last:
            return
        self._next = now + EVERY
        self._marks.append((now, self._fetched))
        while now - self._marks[0][0] > WINDOW and len(self._marks) > 2:
            self._marks.popleft()
        self._run.progress("pull", self._done, self._total, "B")
        if (rate := self.rate()) > 0 and not last:
            self._run.metric("rate", rate / (1 << 20), "MiB/s")
            self._run.metric("eta", max(0, self._total - self._done) / rate, "s")
