"""What a card did while something ran on it: samples as metrics of the job, and a summary for its result."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from hfbench.errors import HfbenchError
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry.monitor import INTERVAL, Monitor
from hfbench.gpu.telemetry.readings import DeviceReading, GpuSnapshot
from hfbench.gpu.telemetry.sampler import Sampler
from hfbench.gpu.telemetry.use import GpuUse

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

FIRST_SAMPLE = 5.0
"""Seconds to wait at the end for the first sample of something short."""
LAST_SAMPLE = 2.0
"""Seconds to wait at the end for the sample in flight."""


WATCHED: dict[str, tuple[str, Callable[[DeviceReading], Value], str]] = {
    "gpu.memory": ("memory", lambda device: device.memory.used, "B"),
    "gpu.power": ("power", lambda device: device.power, "W"),
    "gpu.clock_sm": ("clock_sm", lambda device: device.clock_sm, "MHz"),
    "gpu.utilization": ("utilization", lambda device: device.utilization.gpu, "%"),
    "gpu.temperature": ("temperature", lambda device: device.temperature, "C"),
}
"""Metrics, each with the field of the reading it comes from, how, and its unit."""


class WhileRunning:
    """Samples one card on a thread of its own between `with` and its end. `device` is a lease: a GPU's UUID.

    For anything else, such as `cpu`, nothing is sampled and `use` stays None. What it cannot read never harms the run.
    """

    def __init__(self, run: Run, device: str, *, interval: float = INTERVAL) -> None:
        self.use: GpuUse | None = None
        self._run, self._device = run, device
        self._values: dict[str, list[float]] = {name: [] for name in WATCHED}
        self._why: dict[str, Unavailable] = {}
        self._slowed: Counter[str] = Counter()
        self._energy: list[float] = []
        self._samples, self._judged, self._reason = 0, 0, ""
        self._told = True
        self._began = time.monotonic()
        self._monitor: Monitor | None = None
        if device.startswith("GPU-"):
            self._monitor = Monitor(Sampler(only=device, demo=0), interval=interval, on_sample=self._keep)
        elif device.startswith("MIG-"):
            self._reason = "a slice of a divided GPU is not sampled"

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._monitor is not None:
            self._monitor.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._monitor is not None:
            if self._monitor.wait(1, FIRST_SAMPLE) is None:
                self._reason = "the driver did not answer"
            self._monitor.stop(LAST_SAMPLE)
        if self._monitor is not None or self._reason:
            self.use = self._summary()

    def _keep(self, snapshot: GpuSnapshot) -> None:
        device = next((each for each in snapshot.devices if each.uuid == self._device), None)
        if device is None or device.reason:
            nameless = (each.reason for each in snapshot.devices if isinstance(each.uuid, Unavailable))
            self._reason = device.reason if device else next(nameless, "") or snapshot.reason
            return
        self._samples += 1
        for name, (source, pick, unit) in WATCHED.items():
            value = pick(device)
            if isinstance(value, Unavailable):
                self._why[name] = value
            elif source not in device.stale:
                self._values[name].append(value)
                self._tell(name, value, unit)
        if not isinstance(device.throttle, Unavailable):
            self._judged += 1
            self._slowed.update(device.throttle)
        if not isinstance(device.energy, Unavailable):
            self._energy.append(device.energy)

    def _tell(self, name: str, value: float, unit: str) -> None:
        """Write a metric, until the disk is full: the run itself meets that too, and says so."""
        try:
            if self._told:
                self._run.metric(name, value, unit)
        except (HfbenchError, OSError, ValueError):
            self._told = False

    def _summary(self) -> GpuUse:
        def over(name: str, fold: Callable[[list[float]], float]) -> Value:
            values = self._values[name]
            if values:
                return fold(values)
            return self._why.get(name) or Unavailable(self._reason or "not read")

        spent = self._energy[-1] - self._energy[0] if len(self._energy) > 1 else math.nan
        return GpuUse(
            device=self._device,
            samples=self._samples,
            seconds=round(time.monotonic() - self._began, 3),
            memory_peak=over("gpu.memory", max),
            memory_mean=over("gpu.memory", statistics.fmean),
            power_peak=over("gpu.power", max),
            power_mean=over("gpu.power", statistics.fmean),
            clock_sm_mean=over("gpu.clock_sm", statistics.fmean),
            clock_sm_min=over("gpu.clock_sm", min),
            utilization_mean=over("gpu.utilization", statistics.fmean),
            temperature_peak=over("gpu.temperature", max),
            energy=Unavailable("fewer than two samples tell it") if math.isnan(spent) else spent,
            throttle={word: times / self._judged for word, times in self._slowed.most_common()},
            reason="" if self._samples else self._reason,
        )
