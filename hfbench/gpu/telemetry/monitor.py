"""One thread that samples the GPUs for as long as somebody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from hfbench.gpu.telemetry.readings import GpuSnapshot
from hfbench.gpu.telemetry.sampler import Sampler

INTERVAL = 1.0
SHORTEST = 0.25
"""Seconds between two samples at least: a driver pays for each look."""


class Monitor:
    """Samples every `interval` seconds on a daemon thread and keeps the newest snapshot.

    `on_sample` is called on that thread with each snapshot. Nothing here waits for a driver: leaving is always quick.
    """

    def __init__(
        self,
        sampler: Sampler | None = None,
        *,
        interval: float = INTERVAL,
        on_sample: Callable[[GpuSnapshot], object] | None = None,
    ) -> None:
        self.interval = max(interval, SHORTEST)
        self._sampler = sampler or Sampler()
        self._on_sample = on_sample
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._latest: tuple[GpuSnapshot, float] | None = None
        self._taken = 0
        self._thread = threading.Thread(target=self._work, daemon=True, name="hfbench-gpus")

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self, wait: float = 0.0) -> None:
        """End after the sample in flight; wait for that at most so many seconds."""
        self._stop.set()
        if wait and self._thread.ident is not None:
            self._thread.join(wait)

    def latest(self) -> GpuSnapshot | None:
        """The newest snapshot; when it is overdue it says for how long. None before the first."""
        if self._latest is None:
            return None
        snapshot, at = self._latest
        age = time.monotonic() - at
        if age <= 2 * self.interval + 1 or snapshot.waiting:
            return snapshot
        return replace(snapshot, waiting=f"no sample for {age:.0f} s")

    def wait(self, count: int, timeout: float) -> GpuSnapshot | None:
        """The newest snapshot once `count` were taken, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken >= count, timeout)
        return self.latest()

    def _work(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            snapshot = self._sampler.sample()
            with self._changed:
                self._latest = (snapshot, time.monotonic())
                self._taken += 1
                self._changed.notify_all()
            if self._on_sample is not None:
                self._on_sample(snapshot)
            due = max(due + self.interval, time.monotonic())  # a late sample is not made up for
            self._stop.wait(due - time.monotonic())
        self._sampler.close()
