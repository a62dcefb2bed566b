"""What a card did during a run, summed up for the run's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hfbench.gpu.reading import Unavailable, Value
from hfbench.models.problem import counted
from hfbench.units import show_bytes


@dataclass(frozen=True, kw_only=True)
class GpuUse:
    """A card during a run. Bytes, watts, MHz, per cent, degrees Celsius, joules; a peak between samples is not seen.

    `throttle` has the share of samples in which each reason slowed the card. `reason` says why there are no samples.
    """

    device: str
    samples: int
    seconds: float
    memory_peak: Value
    memory_mean: Value
    power_peak: Value
    power_mean: Value
    clock_sm_mean: Value
    clock_sm_min: Value
    utilization_mean: Value
    temperature_peak: Value
    energy: Value
    throttle: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The run in one line: memory, power, clocks, and what slowed the card for how much of the time."""
        if self.reason:
            return f"not sampled: {self.reason}"
        told = [
            _figure("peak", self.memory_peak, show_bytes),
            _figure("mean", self.power_mean, lambda watts: f"{watts:.0f} W"),
            _figure("SM", self.clock_sm_mean, lambda clock: f"{clock:.0f} MHz"),
            _figure("at most", self.temperature_peak, lambda degrees: f"{degrees:.0f} C"),
        ]
        slowed = ", ".join(f"{word} {share:.0%}" for word, share in self.throttle.items())
        text = ", ".join(filter(None, told)) + f" over {counted(self.samples, 'sample')}"
        return f"{text}; slowed by {slowed} of the time" if slowed else text


def _figure(label: str, value: Value, show: Callable[[float], str]) -> str:
    return "" if isinstance(value, Unavailable) else f"{label} {show(value)}"
