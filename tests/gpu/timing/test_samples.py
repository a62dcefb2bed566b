"""Raw samples and their summaries."""

from __future__ import annotations

import math

import pytest

from hfbench.gpu.timing.formulas import FORMULAS, TPOT
from hfbench.gpu.timing.samples import Samples


def test_a_summary_keeps_every_sample_in_the_order_taken() -> None:
    samples = Samples("tpot", TPOT)
    samples.extend([0.03, 0.01, 0.02])
    summary = samples.summary()
    assert summary.samples == [0.03, 0.01, 0.02]
    assert (summary.n, summary.unit, summary.p50) == (3, "s", 0.02)
    assert FORMULAS[summary.formula] is TPOT


def test_an_interval_that_cannot_be_known_is_absent_and_says_why() -> None:
    summary = Samples("tpot", TPOT, [1.0, 2.0]).summary()
    assert summary.ci_low is None
    assert summary.ci_high is None
    assert summary.ci_reason == "the interval needs at least 6 samples, there are 2"
    assert Samples("tpot", TPOT, [1.0, 2.0]).relative_interval() == math.inf


def test_the_relative_interval_counts_its_farther_end() -> None:
    assert Samples("tpot", TPOT, [9.0, 10.0, 10.0, 10.0, 10.0, 15.0]).relative_interval() == 0.5


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_what_no_clock_can_show_is_not_a_sample(value: float) -> None:
    with pytest.raises(ValueError, match="not a measurement"):
        Samples("tpot", TPOT).add(value)


def test_formula_ids_are_equations_and_their_units_are_base_units() -> None:
    assert TPOT.id == "tpot=(e2e-ttft)/(n_out-1)"
    assert all("=" in formula.id and formula.unit in ("s", "tok/s", "x") for formula in FORMULAS.values())
