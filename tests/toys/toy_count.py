"""toy.count: counts slowly, so that tests can watch, stop and kill it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.jobs.run import Run


@dataclass(frozen=True)
class Counted:
    """How far it came."""

    count: int
    doubled: float


@action("toy.count", result=Counted, lease="device")
@dataclass(frozen=True, kw_only=True)
class Count:
    """Count up to a number."""

    to: int = param("How far to count", default=3, ge=1, le=100000)
    pause: float = param("Time between two numbers", default=0.02, ge=0, unit="s")
    device: str = param("Device to hold meanwhile", default="cpu", kind="device")
    stubborn: bool = param("Ignore requests to stop", default=False)
    stray: bool = param("Leave a process behind", default=False)
    model: str = param("A name that is not looked at", default="", kind="model")

    def perform(self, run: Run) -> Counted:
        if self.stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.stray and (pid := os.fork()) == 0:
            time.sleep(600)
        elif self.stray:
            (run.artifacts / "stray").write_text(str(pid))
        for number in range(1, self.to + 1):
            print(f"counted {number}", flush=True)
            run.progress("count", number, self.to, "number")
            run.metric("number", number, "s")
            time.sleep(self.pause)
        return Counted(count=self.to, doubled=self.to * 2.0)
