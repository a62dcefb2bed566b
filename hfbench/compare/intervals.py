"""How far a statistic, and the ratio of two, can be known: 95 % intervals that drift and neighbours make wider."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from hfbench.compare.metrics import Metric, number
from hfbench.gpu.timing.statistics import EXACT_UP_TO, Z_95, Interval, mean, percentile, standard_deviation

BLOCKS = 10
"""Parts a run is cut into: neighbouring samples resemble each other, and blocks tell by how much."""
LEAST_BLOCK = 3
LEAST_BLOCKS = 5
RUN_TO_RUN = 0.01
"""Share by which a run's median may lie off another's of the same thing whatever it says of itself: another process,
another place in memory, another temperature. A floor for calm machines; busy ones have their verdicts withheld."""
T_95 = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Two-sided 95 % points of Student's t by degrees of freedom."""
TAIL = 0.025
PERCENT = {"p50": 50.0, "p90": 90.0, "p99": 99.0}

Statistic = Callable[[Sequence[float]], float]


def statistic(name: str) -> Statistic | None:
    """The function behind `p50`, `p90`, `p99` or `mean`; None for what has no interval, such as `min`."""
    if name == "mean":
        return _mean
    if name in PERCENT:
        return lambda samples: percentile(samples, PERCENT[name])
    return None


def interval_of(values: Sequence[float], name: str) -> Interval | None:
    """A 95 % interval of a statistic of one run's samples, in the order they were taken.

    The wider of two: that of order statistics, which takes samples to be independent, and that of the statistics of up
    to ten consecutive blocks, which grows where they drift or come in waves. None when there are too few samples.
    """
    function = statistic(name)
    if function is None:
        return None
    found = [_by_blocks(values, function)]
    if name in PERCENT:
        ordered = _by_order(values, PERCENT[name])
        if ordered is None:
            return None
        found.append(ordered)
    ends = [each for each in found if each is not None]
    return Interval(min(each.low for each in ends), max(each.high for each in ends)) if ends else None


def told_interval(metric: Metric) -> Interval | None:
    """The interval of the median that a summary without samples still tells."""
    low, high = number(metric.summary.get("ci_low")), number(metric.summary.get("ci_high"))
    return Interval(low, high) if low is not None and high is not None else None


def ratio_interval(a: float, around_a: Interval, b: float, around_b: Interval) -> Interval | None:
    """The interval of b / a from those of two runs that knew nothing of each other; None where one reaches zero, or the
    ratio what a number can hold.

    Distances are added as squares on a logarithmic scale (MOVER), with `RUN_TO_RUN` once for each run.
    """
    if min(a, b, around_a.low, around_b.low) <= 0:
        return None
    middle = math.log(b) - math.log(a)
    allowed = 2 * RUN_TO_RUN**2
    below = math.sqrt(_log_ratio(b, around_b.low) ** 2 + _log_ratio(around_a.high, a) ** 2 + allowed)
    above = math.sqrt(_log_ratio(around_b.high, b) ** 2 + _log_ratio(a, around_a.low) ** 2 + allowed)
    low, high = _exp(middle - below), _exp(middle + above)
    return Interval(low, high) if low > 0 and high < math.inf else None


def paired_ratios(a: Sequence[float | None], b: Sequence[float | None]) -> list[float]:
    """b / a of every round that both ran in; rounds without a number, or in which A took no time, are left out."""
    rounds = ((one, other) for one, other in zip(a, b, strict=False) if one is not None and other is not None)
    return [ratio for first, later in rounds if (ratio := ratio_of(first, later)) is not None and first > 0]


def ratio_of(a: float, b: float) -> float | None:
    """b / a; None where A is zero, or the ratio is more or less than a number can hold."""
    ratio = b / a if a else math.inf
    return ratio if math.isfinite(ratio) and (ratio or not b) else None


def _mean(samples: Sequence[float]) -> float:
    try:
        return mean(samples)
    except OverflowError:  # their sum is more than a number can hold
        return math.fsum(each / len(samples) for each in samples)


def _log_ratio(a: float, b: float) -> float:
    return math.log(a) - math.log(b)


def _exp(power: float) -> float:
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def _by_order(values: Sequence[float], percent: float) -> Interval | None:
    """Order statistics between which the percentile lies with 95 %, by the binomial distribution."""
    count, share = len(values), percent / 100
    ordered = sorted(values)
    if count > EXACT_UP_TO:
        reach = Z_95 * math.sqrt(count * share * (1 - share))
        low, high = math.floor(count * share - reach), math.ceil(count * share + reach)
        return Interval(ordered[low], ordered[high]) if low >= 0 and high < count else None
    below = above = -1
    reached = 0.0
    for rank in range(count + 1):
        chance = _binomial(count, rank, share)
        if reached + chance <= TAIL:
            below = rank
        reached += chance
        if above < 0 and reached >= 1 - TAIL:
            above = rank
            break
    if below < 0 or above < 0 or above >= count:
        return None
    return Interval(ordered[below], ordered[above])


def _binomial(count: int, successes: int, share: float) -> float:
    if not 0 < share < 1:
        return float(successes == round(count * share))
    logarithm = (
        math.lgamma(count + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(count - successes + 1)
        + successes * math.log(share)
        + (count - successes) * math.log1p(-share)
    )
    return math.exp(logarithm)


def _by_blocks(values: Sequence[float], function: Statistic) -> Interval | None:
    """Student's interval over the logarithms of a statistic of consecutive blocks; None below fifteen samples."""
    blocks = min(BLOCKS, len(values) // LEAST_BLOCK)
    if blocks < LEAST_BLOCKS or min(values) <= 0:
        return None
    ends = [round(place * len(values) / blocks) for place in range(blocks + 1)]
    each = [math.log(function(values[begin:end])) for begin, end in itertools.pairwise(ends)]
    spread = standard_deviation(each) or 0.0
    half = T_95[blocks - 1] * spread / math.sqrt(blocks)
    middle = math.log(function(values))
    return Interval(_exp(middle - half), _exp(middle + half))
