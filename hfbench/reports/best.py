"""The best of several measurements of one metric, and whether their samples decide that it leads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hfbench.compare.metrics import Metric
from hfbench.jobs.doubt import doubt
from hfbench.sweeps.grid import may_be_equal


@dataclass(frozen=True)
class Best:
    """The best median, in the metric's unit; `undecided` where the samples may as well put another in front."""

    value: float
    undecided: bool

    @property
    def word(self) -> str:
        """How it is called."""
        return "best, undecided" if self.undecided else "best"


def in_doubt(metric: Metric, verdicts: Iterable[str]) -> bool:
    """Whether its samples give no interval of the median, or a verdict of its run speaks against it."""
    return bool(metric.count and doubt(metric.count, interval=_interval(metric) is not None, verdicts=verdicts))


def best_of(metrics: Iterable[Metric], verdicts: Iterable[str] = ()) -> Best | None:
    """The best median of a metric; None where fewer than two have one, or nothing tells which way is better. `verdicts`
    are the words said of any of their runs."""
    known = [(value, each) for each in metrics if (value := each.statistic("p50")) is not None]
    if len(known) < 2 or not known[0][1].better:
        return None
    first, best = (max if known[0][1].better == "higher" else min)(known, key=lambda pair: pair[0])
    reached = (may_be_equal(_interval(best), _interval(each)) for _, each in known if each is not best)
    return Best(first, undecided=any(reached) or in_doubt(best, verdicts))


def _interval(metric: Metric) -> tuple[float, float] | None:
    low, high = metric.statistic("ci_low"), metric.statistic("ci_high")
    return None if low is None or high is None else (low, high)
