"""The story of one real sweep, told by a test: run it, let something happen to it, look at how it stands."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfbench.actions.registry import find
from hfbench.conduct.make import Sweep, make
from hfbench.conduct.start import resume, start
from hfbench.conduct.vary import sweep_script
from hfbench.jobs.process import same_process
from hfbench.paths import sweeps_root
from hfbench.scripts.command import plan_of
from hfbench.sweeps.folder import SweepFolder
from hfbench.sweeps.snapshot import SweepSnapshot, read_sweep

PATIENCE = 60.0
"""Seconds after which a sweep that does not move on is a failed test."""


class SweepStory:
    """Each step returns the story itself."""

    def __init__(self, name: str = "story") -> None:
        self.folder = SweepFolder(sweeps_root() / name)

    @property
    def now(self) -> SweepSnapshot:
        """The sweep as anybody sees it."""
        return read_sweep(self.folder.path)

    @property
    def journal(self) -> list[dict[str, Any]]:
        """What its conductors wrote so far."""
        return [json.loads(line) for line in self.folder.journal.read_text().splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of one kind."""
        return [line for line in self.journal if line["kind"] == kind]

    @property
    def states(self) -> list[str]:
        """The state of each cell."""
        return [cell.state for cell in self.now.cells]

    def make(
        self, action: str, varied: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any] | None = None, **more: Any
    ) -> SweepStory:
        """Make the folder of a sweep of one action."""
        source = sweep_script(find(action), self.folder.name, fixed or {}, varied).encode()
        return self.make_script(source, **more)

    def make_script(self, source: bytes | str, **more: Any) -> SweepStory:
        """Make the folder of a sweep of a script."""
        data = source if isinstance(source, bytes) else source.encode()
        plan = plan_of(data, Path("story.hfb.yaml"))
        make(sweeps_root(), Sweep(name=self.folder.name, source=data, plan=plan, **more))
        return self

    def start(self) -> SweepStory:
        """Start its first conductor."""
        start(self.folder)
        return self

    def resume(self) -> SweepStory:
        """Start another one."""
        resume(self.folder.path)
        return self

    def until(self, condition: Callable[[SweepSnapshot], bool]) -> SweepStory:
        """Wait until the sweep meets a condition."""
        end = time.monotonic() + PATIENCE
        while not condition(self.now):
            assert time.monotonic() < end, f"it never came to that; last: {self.now}; {self.log}"
            time.sleep(0.02)
        return self

    def end(self) -> SweepSnapshot:
        """Wait until nobody conducts it any more."""
        self.until(lambda now: now.state != "running")
        return self.now

    @property
    def log(self) -> str:
        """What its conductors printed."""
        return self.folder.log.read_text() if self.folder.log.exists() else ""

    @property
    def conductor(self) -> tuple[int, int]:
        """Process id and start of the latest conductor."""
        line = [each for each in self.of("conductor") if "ticks" in each][-1]
        return line["pid"], line["ticks"]

    def kill(self) -> SweepStory:
        """Kill its conductor with -9 and wait until its lock is free."""
        pid, ticks = self.conductor
        assert same_process(pid, ticks)
        os.kill(pid, signal.SIGKILL)
        return self.until(lambda now: now.state != "running")

    def clean_up(self) -> None:
        """Leave nothing running."""
        if self.folder.journal.exists() and self.folder.conducted():
            pid, ticks = self.conductor
            if same_process(pid, ticks):
                os.kill(pid, signal.SIGTERM)
            self.until(lambda now: now.state != "running")
