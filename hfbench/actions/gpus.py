"""gpus: what the GPUs of this machine do right now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry import DeviceReading, GpuSnapshot, Sampler
from hfbench.text import clip
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class GpusResult(GpuSnapshot):
    """A snapshot of all GPUs; a value that could not be read is its reason."""

    def lines(self) -> list[str]:
        """One row a GPU, 80 columns at most, then the reason for what is missing."""
        if not self.devices:
            return [clip(f"no GPU: {self.reason}", WIDTH)]
        rows = [f"{'':>3} {'GPU':<26}{'used':>11}{'total':>11}{'util':>7}{'temp':>7}{'power':>9}"]
        for device in self.devices:
            rows += _rows(device)
        return [*rows, f"driver {_text(self.driver)}, CUDA {_text(self.cuda)}"]


@action("gpus", result=GpusResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Gpus:
    """Show the GPUs: memory, utilisation, temperature and power."""

    def perform(self, run: Run) -> GpusResult:
        """Take one sample."""
        sampler = Sampler()
        try:
            snapshot = sampler.sample()
        finally:
            sampler.close()
        return GpusResult(**vars(snapshot))


def _rows(device: DeviceReading) -> list[str]:
    if device.reason:
        return [clip(f"{device.index:>3} {device.reason}", WIDTH)]
    memory = device.memory
    return [
        f"{device.index:>3} {clip(_text(device.name), 25):<26}{_bytes(memory.used):>11}{_bytes(memory.total):>11}"
        f"{_number(device.utilization.gpu, '%'):>7}{_number(device.temperature, 'C'):>7}{_number(device.power, 'W'):>9}"
    ]


def _text(value: str | Unavailable) -> str:
    return value.reason if isinstance(value, Unavailable) else value


def _bytes(value: Value) -> str:
    return "n/a" if isinstance(value, Unavailable) else show_bytes(value)


def _number(value: Value, unit: str) -> str:
    return "n/a" if isinstance(value, Unavailable) else f"{value:.0f} {unit}"
