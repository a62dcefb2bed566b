"""When a measurement has seen enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hfbench.gpu.timing.samples import Samples


class Stop(StrEnum):
    """Why no further sample was taken."""

    INTERVAL_REACHED = "interval-reached"
    BUDGET_SPENT = "budget-spent"
    SAMPLES_TAKEN = "max-iterations"


@dataclass(frozen=True, kw_only=True)
class MedianInterval:
    """Stop when the 95 % interval of every watched median is narrow enough, or at a limit.

    `width` is the share of the median that neither end may be farther away; `budget` is wall time in seconds;
    `most` and `least` count samples. Looking after each sample makes the interval optimistic: `least` guards it.
    """

    width: float = 0.02
    budget: float = 60.0
    most: int = 1000
    least: int = 10

    def verdict(self, watched: Sequence[Samples], elapsed: float) -> Stop | None:
        """The reason to stop after `elapsed` seconds, or None to go on."""
        count = min(len(samples.values) for samples in watched)
        if count >= min(self.least, self.most) and self._widest(watched) <= self.width:
            return Stop.INTERVAL_REACHED
        if count >= self.most:
            return Stop.SAMPLES_TAKEN
        return Stop.BUDGET_SPENT if elapsed >= self.budget else None

    def share(self, watched: Sequence[Samples], elapsed: float) -> float:
        """How near the stop is, from 0 to 1: the farthest of interval, budget and number of samples."""
        count = min(len(samples.values) for samples in watched)
        narrow = min(self.width / max(self._widest(watched), 1e-12), count / self.least)
        return min(1.0, max(elapsed / self.budget, count / self.most, narrow))

    def _widest(self, watched: Sequence[Samples]) -> float:
        return max(samples.relative_interval() for samples in watched)
