"""Intervals of statistics and of ratios: how often they hold what is true, and what makes them wider."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.compare.intervals import interval_of, ratio_interval
from hfbench.gpu.timing.statistics import Interval, median, median_interval

positive = st.floats(min_value=1e-6, max_value=1e6)


@given(st.lists(positive, min_size=6, max_size=60))
def test_the_interval_of_a_median_holds_that_of_its_order_statistics(values: list[float]) -> None:
    found, ordered = interval_of(values, "p50"), median_interval(values)
    assert found is not None
    assert ordered is not None
    assert found.low <= ordered.low * (1 + 1e-9)
    assert found.high >= ordered.high * (1 - 1e-9)


@pytest.mark.parametrize("count", [6, 25, 100, 400])
def test_the_interval_of_a_median_holds_the_true_one_in_19_of_20_runs(count: int) -> None:
    lots = random.Random(count)
    held = 0
    for _ in range(300):
        found = interval_of([lots.lognormvariate(0, 0.1) for _ in range(count)], "p50")
        held += found is not None and found.low <= 1 <= found.high
    assert held / 300 >= 0.93


def test_five_samples_have_no_interval_of_the_median_and_a_hundred_none_of_the_99th_percentile() -> None:
    assert interval_of([1.0, 2.0, 3.0, 4.0, 5.0], "p50") is None
    assert interval_of([float(each) for each in range(1, 101)], "p99") is None
    assert interval_of([float(each) for each in range(1, 1101)], "p99") is not None


def test_the_least_sample_has_no_interval() -> None:
    assert interval_of([float(each) for each in range(1, 101)], "min") is None


def test_waves_of_a_neighbour_make_the_interval_wider_than_the_same_samples_mixed() -> None:
    lots = random.Random(3)
    waves = [1.1 if place // 20 % 2 else 1.0 for place in range(100)]
    taken = [wave * lots.lognormvariate(0, 0.005) for wave in waves]
    mixed = lots.sample(taken, len(taken))
    ours, theirs = interval_of(taken, "mean"), interval_of(mixed, "mean")
    assert ours is not None
    assert theirs is not None
    assert ours.high - ours.low > 1.5 * (theirs.high - theirs.low)


@given(positive, positive, st.floats(min_value=1.0, max_value=1.5), st.floats(min_value=1.0, max_value=1.5))
def test_the_interval_of_a_ratio_holds_it_and_turns_over_when_the_sides_do(
    a: float, b: float, wide_a: float, wide_b: float
) -> None:
    around_a, around_b = Interval(a / wide_a, a * wide_a), Interval(b / wide_b, b * wide_b)
    one, other = ratio_interval(a, around_a, b, around_b), ratio_interval(b, around_b, a, around_a)
    assert one is not None
    assert other is not None
    assert one.low < b / a < one.high
    assert one.low == pytest.approx(1 / other.high)
    assert one.high == pytest.approx(1 / other.low)


def test_two_runs_that_know_their_medians_exactly_are_still_known_to_about_a_percent_each() -> None:
    found = ratio_interval(1.0, Interval(1.0, 1.0), 1.0, Interval(1.0, 1.0))
    assert found is not None
    assert found.high == pytest.approx(1.0142, abs=0.001)


def test_an_interval_that_reaches_zero_gives_no_ratio() -> None:
    assert ratio_interval(1.0, Interval(0.0, 2.0), 1.0, Interval(0.5, 2.0)) is None


def test_large_runs_are_answered_by_the_normal_approximation_within_a_rank_or_two() -> None:
    values = [float(each) for each in range(1, 1001)]
    exact, near = interval_of(values, "p90"), interval_of([*values, 1001.0], "p90")
    assert exact is not None
    assert near is not None
    assert abs(exact.low - near.low) <= 3
    assert abs(exact.high - near.high) <= 3
    assert median(values) == 500.5
