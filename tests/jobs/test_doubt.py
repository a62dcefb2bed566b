"""What is believed of a median: one rule, in the words of verdicts as the measurement says them."""

from __future__ import annotations

import pytest

from hfbench.gpu.timing.formulas import TPOT
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import LEAST_FOR_INTERVAL
from hfbench.gpu.timing.verdicts import Word
from hfbench.jobs.doubt import DISTRUSTED, doubt, samples_for, tells_doubt, verdicts_in


@pytest.mark.parametrize("count", [1, LEAST_FOR_INTERVAL - 1, LEAST_FOR_INTERVAL])
def test_a_median_is_in_doubt_by_its_count_where_its_summary_has_no_interval(count: int) -> None:
    summary = Samples("tpot", TPOT, [1.0] * count).summary()
    told = doubt(summary.n, interval=summary.ci_low is not None, verdicts=["stable", "few-samples"])
    assert told == ("" if count >= LEAST_FOR_INTERVAL else f"n={count}")


def test_words_that_speak_against_a_run_are_words_of_verdicts_and_are_named() -> None:
    assert set(DISTRUSTED) <= set(Word)
    result = {"verdicts": [{"word": "busy-machine"}, {"word": "outliers"}, {"word": "busy-machine"}, 3]}
    assert verdicts_in(result) == ("busy-machine", "outliers")
    assert doubt(1, interval=False, verdicts=verdicts_in(result)) == "n=1, busy-machine"
    assert verdicts_in({"verdicts": "none"}) == verdicts_in(None) == ()


def test_a_percentile_takes_as_many_samples_as_leave_one_above_it() -> None:
    assert [samples_for(name) for name in ("p50", "p90", "p99", "max")] == [1, 10, 100, 1]


def test_a_headline_tells_doubt_by_the_end_of_a_figure_and_not_by_a_question() -> None:
    assert tells_doubt("tpot 1.02 s?  0.92 tok/s")
    assert tells_doubt("tpot 1.02 s  0.92 tok/s?")
    assert not tells_doubt("who? nobody  0.92 tok/s")
