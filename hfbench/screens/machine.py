"""What title line and strip say of the machine: folded from samples and jobs, no widget and no reading here."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from hfbench.actions.registry import find
from hfbench.errors import HfbenchError
from hfbench.gpu.reading import known
from hfbench.jobs.fingerprint import memory_bytes
from hfbench.jobs.state import State
from hfbench.units import show_bytes
from hfbench.widgets.machine_text import GpuLoad, StripState

if TYPE_CHECKING:
    from hfbench.gpu.telemetry import DeviceReading, GpuSnapshot
    from hfbench.jobs.history import JobRow


RECENT = 3600.0
"""Seconds for which the strip names the figure of a job that is over."""

KEPT = 120
"""Samples of the load that are kept: two minutes."""


@dataclass(frozen=True)
class MachineState:
    """Host, GPUs and jobs as the frame shows them."""

    gpus: GpuSnapshot | None = None
    jobs: tuple[JobRow, ...] | None = None
    """All jobs, newest first; None until they were looked at."""
    jobs_trouble: str = ""
    """Why the jobs cannot be listed."""
    recording: bool = False
    loads: Mapping[int, tuple[float | None, ...]] = field(default_factory=dict)
    """The last utilisations of each card, in per cent, oldest first."""

    def with_sample(self, gpus: GpuSnapshot) -> MachineState:
        """The next picture: this sample in front of those before."""
        loads = {
            each.index: (*self.loads.get(each.index, ())[1 - KEPT :], known(each.utilization.gpu))
            for each in gpus.devices
        }
        return replace(self, gpus=gpus, loads=loads)

    @property
    def stale(self) -> str:
        """How old the oldest value is that the driver did not give again, or what it does not answer at all."""
        age = max((each.age for each in self.gpus.devices), default=0.0) if self.gpus else 0.0
        return f"values {age:.0f} s old" if age >= 1 else ""

    @property
    def complete(self) -> bool:
        """True once GPUs and jobs were looked at."""
        return self.gpus is not None and self.jobs is not None

    @property
    def known_jobs(self) -> tuple[JobRow, ...]:
        """The jobs known so far."""
        return self.jobs or ()

    @property
    def status(self) -> tuple[str, ...]:
        """The right side of the title line."""
        running = sum(not row.state.over for row in self.known_jobs)
        names = [device.name for device in self.gpus.devices] if self.gpus else []
        cards = f"{len(names)}x {_short(str(names[0]))}" if names else ""
        told = (
            socket.gethostname(),
            cards,
            f"{running} job{'s' * (running != 1)}" if running else "",
        )
        return tuple(filter(None, told))

    @property
    def strip(self) -> StripState:
        """The line above the keys."""
        host = f"cpu {len(os.sched_getaffinity(0))} cores {show_bytes(memory_bytes())}"
        if self.gpus is None:
            return StripState(reason="looking for GPUs", host=host, latest=self.latest)
        return StripState(
            gpus=tuple(_load(device) for device in self.gpus.devices),
            reason="" if self.gpus.devices else "no GPU",
            host=host,
            latest=self.latest,
            note=self.stale,
        )

    @cached_property
    def latest(self) -> str:
        """The newest job that measured a figure, with that, until it is old; a sentence without a figure is none."""
        since = time.time() - RECENT
        measured = (
            f"job {row.short_id}: {row.headline}"
            for row in self.known_jobs
            if row.state in (State.FINISHED, State.RUNNING)
            and (row.ended is None or row.ended > since)
            and any(map(str.isdigit, row.headline))
            and _measures(row.action)
        )
        return next(measured, "")


@lru_cache
def _measures(action: str) -> bool:
    """Whether an action says so; one that is not known, such as of another installation, says nothing."""
    try:
        return find(action).measures
    except HfbenchError:
        return False


def _load(device: DeviceReading) -> GpuLoad:
    if device.reason:
        return GpuLoad(device.index, reason=device.reason)
    used, total = known(device.memory.used), known(device.memory.total)
    return GpuLoad(
        index=device.index,
        name=_short(str(known(device.name) or "GPU")),
        used=None if used is None else int(used),
        total=None if total is None else int(total),
        utilisation=known(device.utilization.gpu),
        temperature=known(device.temperature),
        power=known(device.power),
    )


def _short(name: str) -> str:
    """`H200` for `NVIDIA H200`: the maker says nothing in a strip."""
    words = [word for word in name.split() if word not in ("NVIDIA", "Tesla", "GeForce")]
    return " ".join(words[:2]) if words and words[0] in ("RTX", "GTX") else (words[0] if words else name)
