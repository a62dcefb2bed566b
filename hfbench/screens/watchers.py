"""Threads that look at GPUs and jobs for as long as the workbench runs, and post what they see."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError
from hfbench.screens.messages import GpusSampled, JobsListed

if TYPE_CHECKING:
    from hfbench.jobs.history import History, JobRow

Post = Callable[[GpusSampled | JobsListed], object]


class Watchers:
    """One thread a source, never two looks in flight. They are daemons: a hung driver call must not hold the exit."""

    def __init__(self, post: Post, jobs_root: Path, refresh: float) -> None:
        self.post, self.jobs_root, self.refresh = post, jobs_root, refresh
        self._stop, self._look = threading.Event(), threading.Event()

    def start(self) -> None:
        """Begin to look."""
        for target in (self._gpus, self._jobs):
            threading.Thread(target=target, daemon=True, name=f"hfbench{target.__name__}").start()

    def stop(self) -> None:
        """End after the look in flight."""
        self._stop.set()
        self._look.set()

    def look_now(self) -> None:
        """Something happened to a job: do not wait for the next turn."""
        self._look.set()

    def _gpus(self) -> None:
        from hfbench.gpu.telemetry import Sampler  # here and below: not before the first frame

        sampler = Sampler()
        while not self._stop.is_set():
            self.post(GpusSampled(sampler.sample(), time.monotonic()))
            self._stop.wait(self.refresh)
        sampler.close()

    def _jobs(self) -> None:
        from hfbench.jobs.directory import JobDirectory
        from hfbench.jobs.history import History
        from hfbench.jobs.launch import adopt

        history: History | None = None
        before: tuple[JobRow, ...] | None = None
        trouble = ""
        while not self._stop.is_set():
            self._look.clear()
            try:
                history = history or History(self.jobs_root)
                rows, now_trouble = tuple(history.rows()), ""
                adopt(JobDirectory(self.jobs_root / row.id) for row in rows if not row.state.over)
            except HfbenchError as error:
                rows, now_trouble = (), str(error)
            if (rows, now_trouble) != (before, trouble):
                before, trouble = rows, now_trouble
                self.post(JobsListed(rows, trouble))
            self._look.wait(1.0)
        if history:
            history.close()
