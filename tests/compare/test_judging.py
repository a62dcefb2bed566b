"""FASTER, SLOWER, SAME or UNDECIDED, and what spoils it."""

from __future__ import annotations

import math
import random

import pytest
from measured_runs import result, times

from hfbench.compare.intervals import interval_of, paired_ratios
from hfbench.compare.judging import Spoil, estimate, judge_metric, spoils_of_run
from hfbench.compare.metrics import Metric, better_of, metrics_of, single_figures
from hfbench.compare.result import MetricVerdict, Word
from hfbench.gpu.timing.verdicts import Word as Against


def metric(values: list[float], name: str = "tpot") -> Metric:
    """A metric with these samples; `throughput` holds their inverse."""
    return metrics_of(result(values))[name]


def judged(a: list[float], b: list[float], name: str = "tpot", **more: object) -> MetricVerdict:
    """B against A."""
    return judge_metric(metric(a, name), metric(b, name), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tpot", "throughput"])
def test_less_time_and_more_throughput_are_both_called_faster(name: str) -> None:
    slow, fast = times(0.050, seed=1), times(0.045, seed=2)
    assert judged(slow, fast, name).word is Word.FASTER
    assert judged(fast, slow, name).word is Word.SLOWER


def test_the_ratio_is_that_of_the_values_as_they_were_measured() -> None:
    found = judged(times(0.050, seed=1), times(0.025, seed=2), "throughput")
    assert found.ratio == pytest.approx(2, rel=0.01)
    found = judged(times(0.050, seed=1), times(0.025, seed=2), "tpot")
    assert found.ratio == pytest.approx(0.5, rel=0.01)


def test_equal_runs_are_the_same_and_few_or_wild_samples_leave_it_open() -> None:
    assert judged(times(0.05, seed=1), times(0.05, seed=2)).word is Word.SAME
    few = judged(times(0.05, count=5), times(0.06, count=5))
    assert few.word is Word.UNDECIDED
    assert "too few samples (5)" in few.reason
    wild = judged(times(0.05, spread=0.3, count=20, seed=1), times(0.055, spread=0.3, count=20, seed=2))
    assert wild.word is Word.UNDECIDED
    assert "more samples" in wild.reason


def summarised(values: list[float], middle: float) -> Metric:
    """A metric of a file that somebody else wrote: samples of any size, summary as told."""
    told = {"p50": middle, "mean": middle, "unit": "s", "n": len(values), "samples": values}
    return metrics_of({"metrics": {"tpot": told}})["tpot"]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("statistic", ["p50", "mean", "p90"])
def test_samples_at_the_ends_of_what_a_number_can_hold_are_judged_and_never_overflow(
    paired: bool, statistic: str
) -> None:
    huge, tiny = summarised([1e308] * 30, 1e308), summarised([5e-324] * 30, 5e-324)
    mixed = summarised([1e308, 5e-324] * 15, 1.0)
    for a in (huge, tiny, mixed):
        for b in (huge, tiny, mixed):
            assert judge_metric(a, b, paired=paired).word in (Word.SAME, Word.UNDECIDED)
            found = estimate(a, b, statistic, paired=paired) if statistic != "p90" else None
            assert found is None or found.ratio is None or 0 < found.ratio < math.inf
            interval_of(a.values, statistic)


def test_a_sample_that_is_no_number_leaves_its_round_out_and_moves_no_other() -> None:
    a = summarised([1.0, math.nan, 2.0, 3.0], 2.0)
    b = summarised([2.0, 9.0, 4.0, 6.0], 4.0)
    assert paired_ratios(a.taken, b.taken) == [2.0, 2.0, 2.0]
    assert a.unreadable == "1 of 4 samples of tpot are no finite numbers and are left out"
    assert b.unreadable == ""


def test_runs_apart_of_one_thing_are_called_different_in_less_than_one_of_twenty() -> None:
    """Each run lies somewhere within a percent, as processes do, and says of itself that it is known better."""
    lots = random.Random(5)
    wrong = 0
    for number in range(200):
        a, b = (times(0.05 * lots.gauss(1, 0.01), seed=2 * number + side, spread=0.02, count=60) for side in (0, 1))
        wrong += judged(a, b).word in (Word.FASTER, Word.SLOWER)
    assert wrong <= 10


def test_five_percent_are_found_when_the_samples_allow_it() -> None:
    found = [judged(times(0.05, seed=n), times(0.0525, seed=n + 500), name="tpot").word for n in range(50)]
    assert found.count(Word.SLOWER) >= 45
    assert Word.FASTER not in found


@pytest.mark.parametrize("word", [Against.THROTTLED, Against.NOT_FINITE])
def test_throttling_and_broken_numbers_spoil_even_a_large_difference(word: Against) -> None:
    spoils = [Spoil(side="B", word=word, detail="the card was slowed by heat in 40% of the samples")]
    found = judged(times(0.05, seed=1), times(0.09, seed=2), spoils=spoils)
    assert found.word is Word.UNDECIDED
    assert found.would_be == "SLOWER"
    assert found.spoiled == (f"B: {word}: the card was slowed by heat in 40% of the samples",)


@pytest.mark.parametrize(
    ("others", "stands"), [(0.4, True), (1.0, False), (1.9, False), (None, False)], ids=["little", "half", "all", "?"]
)
def test_a_busy_machine_spoils_what_its_neighbours_explain(others: float | None, stands: bool) -> None:
    busy = [{"word": "busy-machine", "detail": "other processes kept CPUs busy"}]
    spoils = spoils_of_run({"verdicts": busy, "machine": {"cpus": 2, "others_cpus": others}}, "A")
    small = judged(times(0.05, seed=1), times(0.055, seed=2), spoils=spoils)
    large = judged(times(0.05, seed=1), times(0.09, seed=2), spoils=spoils)
    assert (small.word, small.would_be) == (Word.UNDECIDED, "SLOWER")
    assert (large.word is Word.SLOWER) == stands
    assert large.spoiled == ("A: busy-machine: other processes kept CPUs busy",)


def test_drift_and_outliers_are_found_in_the_samples_themselves() -> None:
    drifting = [0.05 * (1 + place / 1000) for place in range(100)]
    drifting[50:] = [each * 1.06 for each in drifting[50:]]
    found = judged(drifting, times(0.057, seed=2))
    assert any("A: drift" in each for each in found.spoiled)
    spiky = times(0.05, seed=1)
    spiky[::10] = [0.2] * 10
    assert any("B: outliers" in each for each in judged(times(0.05, seed=3), spiky).spoiled)


def test_runs_in_turns_are_judged_by_their_rounds_so_that_a_neighbour_hits_both() -> None:
    lots = random.Random(9)
    neighbour = [lots.choice((1.0, 1.0, 1.6)) for _ in range(100)]
    a = [0.050 * slow * lots.lognormvariate(0, 0.01) for slow in neighbour]
    b = [0.054 * slow * lots.lognormvariate(0, 0.01) for slow in neighbour]
    assert judged(a, b, paired=True).word is Word.SLOWER
    assert judged(a, b, paired=True).method == "in turns"
    assert judged(a, b).word is Word.UNDECIDED


def test_summaries_without_samples_are_compared_by_their_intervals() -> None:
    a, b = (result(times(middle, seed=3)) for middle in (0.05, 0.06))
    for each in (a, b):
        del each["metrics"]["tpot"]["samples"]
    found = judge_metric(metrics_of(a)["tpot"], metrics_of(b)["tpot"])
    assert (found.word, found.method, found.n_a) == (Word.SLOWER, "from intervals", 100)


def test_a_zero_gives_no_ratio_and_no_verdict() -> None:
    found = judge_metric(metric([0.05] * 10), metric([0.05] * 10))
    assert found.word is Word.SAME
    zero = Metric(name="t", unit="s", better="lower", summary={"p50": 0.0, "unit": "s", "samples": [0.0] * 10})
    found = judge_metric(zero, metric([0.05] * 10))
    assert (found.ratio, found.word, found.reason) == (None, Word.UNDECIDED, "A is zero")


def test_what_a_run_says_against_itself_is_read_and_words_of_another_version_are_passed_over() -> None:
    told = {"verdicts": [{"word": "throttled", "detail": "by heat"}, {"word": "haunted", "detail": "?"}, 7, {}]}
    assert [str(each) for each in spoils_of_run(told, "A")] == ["A: throttled: by heat"]
    assert spoils_of_run({"verdicts": "none"}, "A") == []
    assert spoils_of_run(None, "A") == []


def test_metrics_are_found_by_path_and_rows_by_their_name() -> None:
    inner = result(times(0.05))["metrics"]["tpot"]
    found = metrics_of({"metrics": {"tpot": inner}, "rows": [{"mode": "eager", "tpot": inner}, {"tpot": inner}]})
    assert list(found) == ["tpot", "rows.eager.tpot", "rows.1.tpot"]


def test_single_figures_have_a_unit_and_belong_to_no_summary() -> None:
    data = {**result(times(0.05)), "peak_memory": {"rss_bytes": 5}, "load_seconds": 1.5, "batch": 4}
    assert single_figures(data) == {"peak_memory.rss_bytes": (5, "B"), "load_seconds": (1.5, "s")}


@pytest.mark.parametrize(
    ("name", "unit", "better"),
    [("tpot", "s", "lower"), ("throughput", "tok/s", "higher"), ("bandwidth", "", "higher"), ("weight", "kg", "")],
)
def test_which_way_is_better_follows_from_unit_and_name(name: str, unit: str, better: str) -> None:
    assert better_of(name, unit) == better
