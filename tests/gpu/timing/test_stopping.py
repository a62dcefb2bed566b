"""The stopping rule, without any time passing."""

from __future__ import annotations

import pytest

from hfbench.gpu.timing.formulas import TPOT, TTFT
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import Budget, MedianInterval, Stop

STEADY = [1.0, 1.001, 0.999] * 10
LOOSE = [1.0, 2.0, 3.0] * 10


def watched(*values: list[float]) -> list[Samples]:
    return [Samples(name, formula, each) for name, formula, each in zip("ab", (TTFT, TPOT), values, strict=False)]


def test_it_stops_when_every_interval_is_narrow() -> None:
    assert MedianInterval().verdict(watched(STEADY, STEADY), elapsed=1.0) is Stop.INTERVAL_REACHED


def test_one_wide_interval_is_enough_to_go_on() -> None:
    assert MedianInterval().verdict(watched(STEADY, LOOSE), elapsed=1.0) is None


def test_a_few_equal_samples_are_not_believed() -> None:
    assert MedianInterval(least=10).verdict(watched([1.0] * 9), elapsed=1.0) is None
    assert MedianInterval(least=10).verdict(watched([1.0] * 10), elapsed=1.0) is Stop.INTERVAL_REACHED


def test_the_budget_ends_it_with_one_sample() -> None:
    assert MedianInterval(budget=2.0).verdict(watched([1.0]), elapsed=2.0) is Stop.BUDGET_SPENT


def test_the_most_samples_end_it() -> None:
    assert MedianInterval(most=30).verdict(watched(LOOSE), elapsed=1.0) is Stop.SAMPLES_TAKEN


def test_a_reached_interval_is_named_even_when_the_limit_comes_with_it() -> None:
    assert MedianInterval(most=30, budget=1.0).verdict(watched(STEADY), elapsed=9.0) is Stop.INTERVAL_REACHED


@pytest.mark.parametrize(("values", "elapsed", "share"), [([1.0], 30.0, 0.5), (LOOSE, 60.0, 1.0), (STEADY, 0.0, 1.0)])
def test_the_share_follows_whatever_is_nearest_to_the_stop(values: list[float], elapsed: float, share: float) -> None:
    assert MedianInterval().share(watched(values), elapsed) == pytest.approx(share, abs=0.001)


def test_without_an_interval_only_time_and_number_count() -> None:
    assert MedianInterval(most=100).share(watched([1.0] * 5), elapsed=0.0) == 0.05


def test_a_sample_that_is_expected_to_end_after_the_budget_is_not_begun() -> None:
    rule = MedianInterval(budget=10.0)
    assert rule.verdict(watched([4.0, 4.0]), elapsed=8.0, expected=4.0) is Stop.BUDGET_SPENT
    assert rule.verdict(watched([4.0]), elapsed=4.0, expected=4.0) is None


def test_the_sample_that_gives_the_median_its_interval_may_end_after_the_budget() -> None:
    rule = MedianInterval(budget=10.0)
    assert rule.verdict(watched([1.8] * 5), elapsed=9.0, expected=1.8) is None
    assert rule.verdict(watched([1.8] * 5), elapsed=10.0, expected=1.8) is Stop.BUDGET_SPENT
    assert rule.verdict(watched([1.5, 1.6, 1.8, 1.5, 1.7, 1.6]), elapsed=9.0, expected=1.8) is Stop.BUDGET_SPENT


def test_a_warm_up_leaves_the_budget_room_for_one_that_counts() -> None:
    budget = Budget(100.0)
    assert budget.warms_up_again(49.0)
    assert not budget.warms_up_again(51.0)
    assert Budget(0.0).spent
