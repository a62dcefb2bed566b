"""When a measurement has seen enough."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import LEAST_FOR_INTERVAL
from hfbench.units import show_seconds


class Stop(StrEnum):
    """Why no further sample was taken."""

    INTERVAL_REACHED = "interval-reached"
    BUDGET_SPENT = "budget-spent"
    SAMPLES_TAKEN = "max-iterations"


@dataclass(frozen=True)
class Budget:
    """Wall time in seconds for warm-up and measurement together, from the moment this is made."""

    seconds: float
    began: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds that are gone of it."""
        return time.perf_counter() - self.began

    @property
    def spent(self) -> bool:
        """Whether nothing is left of it."""
        return self.elapsed >= self.seconds

    def warms_up_again(self, last: float) -> bool:
        """Whether another warm-up of `last` seconds leaves as long for one that counts."""
        return self.elapsed + 2 * last <= self.seconds

    def note(self, taken: str, *, cold: bool) -> str:
        """That it ended the measurement after so many iterations or rounds, `taken` in words; `cold` where the warm-up
        took all of it, so that the only one was not warmed up."""
        told = f"the budget of {show_seconds(self.seconds)} ended it after {taken}"
        return f"{told}, which was the first and not warmed up" if cold else told


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

    def verdict(self, watched: Sequence[Samples], elapsed: float, expected: float = 0.0) -> Stop | None:
        """The reason to stop after `elapsed` seconds, or None to go on.

        The next sample, expected to take so many seconds, is not begun where it would end after the budget, unless it
        is the one that gives the median its interval.
        """
        count = min(len(samples.values) for samples in watched)
        if count >= min(self.least, self.most) and self._widest(watched) <= self.width:
            return Stop.INTERVAL_REACHED
        if count >= self.most:
            return Stop.SAMPLES_TAKEN
        late = elapsed + expected > self.budget and count + 1 != LEAST_FOR_INTERVAL
        return Stop.BUDGET_SPENT if late or elapsed >= self.budget else None

    def share(self, watched: Sequence[Samples], elapsed: float) -> float:
        """How near the stop is, from 0 to 1: the farthest of interval, budget and number of samples."""
        count = min(len(samples.values) for samples in watched)
        narrow = min(self.width / max(self._widest(watched), 1e-12), count / self.least)
        return min(1.0, max(elapsed / self.budget, count / self.most, narrow))

    def _widest(self, watched: Sequence[Samples]) -> float:
        return max(samples.relative_interval() for samples in watched)
