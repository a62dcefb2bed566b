"""What a list of numbers says: order statistics first, because timings are skewed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
LEAST_FOR_INTERVAL = 6
"""Fewer samples have no 95 % interval of the median: even [min, max] of five covers it with 93.75 % only."""
EXACT_UP_TO = 1000
"""Above this many samples the normal approximation of the binomial is used; they agree within one rank."""
Z_95 = 1.959964
MAD_TO_SIGMA = 1.4826
"""A MAD times this is a standard deviation, were the samples normal."""
OUTLIER_MADS = 5.0


@dataclass(frozen=True)
class Interval:
    """Both ends of a confidence interval, in the unit of the samples."""

    low: float
    high: float

    def overlaps(self, other: Interval) -> bool:
        """Whether some value lies in both."""
        return self.low <= other.high and other.low <= self.high


def percentile(samples: Sequence[float], percent: float) -> float:
    """The value below which `percent` of the samples lie, linear between the two closest ranks.

    Rank = percent/100 * (n-1) over the sorted samples (Hyndman and Fan's type 7). ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples have no percentile")
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is not a percentage")
    ordered = sorted(samples)
    rank = percent / 100 * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def median(samples: Sequence[float]) -> float:
    """The middle sample, or the mean of the two middle ones."""
    return percentile(samples, 50)


def mean(samples: Sequence[float]) -> float:
    """The arithmetic mean, summed without loss."""
    if not samples:
        raise ValueError("no samples have no mean")
    return math.fsum(samples) / len(samples)


def standard_deviation(samples: Sequence[float]) -> float | None:
    """The sample's standard deviation (divided by n-1); None for fewer than two samples."""
    if len(samples) < 2:
        return None
    middle = mean(samples)
    return math.sqrt(math.fsum((each - middle) ** 2 for each in samples) / (len(samples) - 1))


def median_interval(samples: Sequence[float]) -> Interval | None:
    """A 95 % confidence interval of the median from order statistics; None below six samples.

    It assumes independent samples and nothing about their distribution: the k-th smallest and k-th largest
    bound the median unless fewer than k of n fair coins fall on one side.
    """
    if len(samples) < LEAST_FOR_INTERVAL:
        return None
    ordered, depth = sorted(samples), _depth(len(samples))
    return Interval(ordered[depth - 1], ordered[-depth])


def median_deviation(samples: Sequence[float]) -> float:
    """MAD: the median distance from the median."""
    middle = median(samples)
    return median([abs(each - middle) for each in samples])


def outliers(samples: Sequence[float]) -> int:
    """How many samples lie more than 5 scaled MAD from the median; 0 when most samples are equal."""
    if not samples:
        return 0
    middle, spread = median(samples), median_deviation(samples) * MAD_TO_SIGMA
    return sum(abs(each - middle) > OUTLIER_MADS * spread for each in samples) if spread else 0


def drift(samples: Sequence[float]) -> float | None:
    """How much the median of the second half exceeds that of the first, as a share of the first.

    None when a half has too few samples for an interval, or the first half's median is zero.
    """
    first, second = halves(samples)
    if len(first) < LEAST_FOR_INTERVAL or not median(first):
        return None
    return median(second) / median(first) - 1


def halves(samples: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The samples in the order taken, cut in two; a middle one belongs to the second half."""
    middle = len(samples) // 2
    return samples[:middle], samples[middle:]


@lru_cache(maxsize=1024)
def _depth(count: int) -> int:
    """The greatest k with P(fewer than k of `count` fair coins show heads) <= 2.5 %."""
    if count > EXACT_UP_TO:
        return math.floor(count / 2 - Z_95 * math.sqrt(count) / 2)
    allowed = (1 - CONFIDENCE) / 2 * 2**count
    ways = depth = 0
    while (ways := ways + math.comb(count, depth)) <= allowed:
        depth += 1
    return depth
