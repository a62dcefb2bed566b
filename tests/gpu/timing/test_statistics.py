"""Statistics against known answers and against what must hold of any samples."""

from __future__ import annotations

import math
import random
import statistics as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.gpu.timing.statistics import (
    Interval,
    drift,
    mean,
    median,
    median_interval,
    outliers,
    percentile,
    standard_deviation,
)

times = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=60)


def test_percentiles_are_linear_between_closest_ranks() -> None:
    assert percentile([1, 2, 3, 4], 50) == 2.5
    assert percentile([4, 1, 3, 2], 90) == pytest.approx(3.7)
    assert percentile(range(101), 99) == 99
    assert percentile([7.0], 99) == 7.0


@pytest.mark.parametrize("percent", [-1, 101, math.nan])
def test_a_percentage_outside_0_to_100_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="not a percentage"):
        percentile([1.0], percent)


def test_nothing_is_claimed_of_no_samples() -> None:
    with pytest.raises(ValueError):
        percentile([], 50)
    with pytest.raises(ValueError):
        mean([])
    assert standard_deviation([1.0]) is None
    assert outliers([]) == 0


@given(times)
def test_median_and_mean_agree_with_the_standard_library(samples: list[float]) -> None:
    assert median(samples) == pytest.approx(standard.median(samples))
    assert mean(samples) == pytest.approx(standard.fmean(samples))


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=60))
def test_standard_deviation_is_the_samples_divided_by_n_minus_one(samples: list[float]) -> None:
    assert standard_deviation(samples) == pytest.approx(standard.stdev(samples), abs=1e-9)


@pytest.mark.parametrize(
    ("count", "rank"),
    # The rank k of the lower bound: tables of the sign test at 95 %.
    [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6), (25, 8), (50, 18), (100, 40)],
)
def test_interval_ends_at_the_ranks_of_the_sign_test(count: int, rank: int) -> None:
    samples = [float(number) for number in range(1, count + 1)]
    assert median_interval(samples) == Interval(rank, count + 1 - rank)


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_samples_have_no_interval(count: int) -> None:
    assert median_interval([1.0] * count) is None


def test_exact_and_approximate_ranks_meet() -> None:
    exact = median_interval([float(number) for number in range(1000)])
    approximate = median_interval([float(number) for number in range(1001)])
    assert exact is not None
    assert approximate is not None
    assert abs(exact.low - approximate.low) <= 1


def test_interval_covers_the_true_median_in_at_least_95_percent_of_trials() -> None:
    source, covered = random.Random(7), 0
    for _ in range(2000):
        interval = median_interval([source.expovariate(1.0) for _ in range(15)])
        assert interval is not None
        covered += interval.low <= math.log(2) <= interval.high
    assert covered / 2000 >= 0.95


@given(st.lists(st.floats(1e-9, 1e6), min_size=6, max_size=200))
def test_interval_holds_the_sample_median(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert interval is not None
    assert interval.low <= median(samples) <= interval.high


def test_outliers_lie_over_five_scaled_mads_away_on_either_side() -> None:
    quiet = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01]
    assert outliers(quiet) == 0
    assert outliers([*quiet, 5.0, 0.1]) == 2
    assert outliers([1.0] * 9 + [50.0]) == 0  # no spread to measure by


def test_drift_compares_the_halves_and_needs_six_samples_in_each() -> None:
    assert drift([1.0] * 6 + [1.5] * 6) == pytest.approx(0.5)
    assert drift([1.0] * 5 + [1.5] * 6) is None
    assert drift([0.0] * 12) is None
