"""toy.burn: pretends to use a GPU until a file appears, and is watched meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.devices import choose_device
from hfbench.gpu.telemetry import GpuUse, WhileRunning
from hfbench.jobs.run import Run


@dataclass(frozen=True)
class Burnt:
    """What the card did; nothing on the CPU."""

    gpu: GpuUse | None


@action("toy.burn", result=Burnt, lease="device")
@dataclass(frozen=True, kw_only=True)
class Burn:
    """Use a device until a file appears."""

    until: Path = param("The file that ends it", kind="path")
    device: str = param("Device to use", default="cuda:0", kind="device")

    def perform(self, run: Run) -> Burnt:
        with WhileRunning(run, choose_device(self.device).lease, interval=0.25) as watched:
            while not self.until.exists():
                time.sleep(0.02)
        return Burnt(gpu=watched.use)
