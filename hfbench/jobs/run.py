"""What a running action reports to: the same object in a worker, in the calling process and in a test."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hfbench.jobs.events import Event

# Events are loaded by the first one told: most commands that only read tell none, and a dozen dataclasses take time.

LEAST_INTERVAL = 0.1
"""Seconds between two progress events of one phase: readers repaint from them."""


def ignore(event: Event) -> None:
    """The sink of a run nobody watches."""


class Run:
    """Progress, metrics, log lines and artifacts of one run. `directory` is None when no job holds it."""

    def __init__(self, emit: Callable[[Event], None] = ignore, directory: Path | None = None) -> None:
        self.emit = emit
        self.directory = directory
        self._last_progress = ("", 0.0)

    def progress(self, phase: str, done: float, total: float | None = None, unit: str = "") -> None:
        """Tell how far a phase is; floods are thinned, the first and the last of a phase never are."""
        now, (last_phase, last_time) = time.monotonic(), self._last_progress
        if phase == last_phase and now - last_time < LEAST_INTERVAL and done != total:
            return
        self._last_progress = (phase, now)
        from hfbench.jobs.events import Progress

        self.emit(Progress(phase=phase, done=done, total=total, unit=unit))

    def metric(self, name: str, value: float, unit: str) -> None:
        """Report one measured value in base units (s, B, tok/s)."""
        from hfbench.jobs.events import Metric

        self.emit(Metric(name=name, value=value, unit=unit))

    def log(self, text: str, level: str = "info") -> None:
        """Say something to whoever reads the job."""
        from hfbench.jobs.events import Log

        self.emit(Log(text=text, level=level))

    def artifact(self, path: Path, what: str = "") -> None:
        """Announce a file that is complete."""
        from hfbench.jobs.events import Artifact

        inside = self.directory is not None and path.is_relative_to(self.directory)
        shown = path.relative_to(self.directory) if inside and self.directory else path
        self.emit(Artifact(path=str(shown), bytes=path.stat().st_size, what=what))

    @property
    def artifacts(self) -> Path:
        """The folder for files the job makes; made on first use."""
        folder = (self.directory or Path.cwd()) / "artifacts"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
