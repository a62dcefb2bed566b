"""Conditions that must not hold: how they are read, and how they go."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_runs import result, times

from hfbench.compare.conditions import Runs, ask
from hfbench.compare.judging import Spoil
from hfbench.compare.result import Outcome
from hfbench.compare.wish import parse_wish
from hfbench.errors import UsageError
from hfbench.gpu.timing.verdicts import Word


def runs(a: float, b: float, **more: Any) -> Runs:
    """Two results whose times per token are about these seconds."""
    sizes = {"peak_memory": {"rss_bytes": 100}}, {"peak_memory": {"rss_bytes": 150}}
    return Runs(a=result(times(a, seed=1), **sizes[0]), b=result(times(b, seed=2), **sizes[1]), **more)


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("", 1, "name of a metric is missing"),
        ("  > 1.05x", 3, "name of a metric is missing"),
        ("tpot.p50", 9, "one of <, <=, >, >= is missing"),
        ("tpot.p50 == 1x", 10, "== is no order of numbers"),
        ("tpot.p50 > fast", 12, "a number is missing"),
        ("tpot.p50 > 5 parsecs", 14, "unknown unit 'parsecs'"),
        ("tpot.p50 > 1.05x or so", 18, "was over before this"),
        ("tpot.p50 > 5%", 12, "a share of what"),
        ("tpot.p50 > 1e999x", 12, "this number is too large"),
    ],
)
def test_a_condition_that_cannot_be_read_is_told_with_its_column(text: str, column: int, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_wish(text)
    assert f"column {column}: " in str(caught.value)
    assert found in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_wish(text).path


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("tpot.p50 > 1.05x", Outcome.FAILS),
        ("tpot > 1.05x", Outcome.FAILS),
        ("metrics.tpot.p50>1.05x", Outcome.FAILS),
        ("tpot.p50 > 1.3x", Outcome.PASSES),
        ("tpot.p50 > 1.2x", Outcome.UNDECIDED),
        ("throughput < 0.95x", Outcome.FAILS),
        ("tpot.mean >= 1.1x", Outcome.FAILS),
        ("tpot.p50 > 55 ms", Outcome.FAILS),
        ("tpot.p50 > 0.1 s", Outcome.PASSES),
        ("tpot.min > 1.05x", Outcome.UNDECIDED),
        ("peak_memory.rss_bytes > 1.4x", Outcome.FAILS),
        ("peak_memory.rss_bytes > 1 KiB", Outcome.PASSES),
    ],
)
def test_a_condition_fails_passes_or_is_not_decided_by_the_whole_interval(text: str, outcome: Outcome) -> None:
    assert ask(parse_wish(text), [runs(0.05, 0.06)]).outcome is outcome


def test_what_spoils_a_run_leaves_a_condition_open_unless_it_is_far_away() -> None:
    busy = (Spoil(side="B", word=Word.BUSY_MACHINE, detail="other processes kept 1.5 of 2 CPUs busy"),)
    found = ask(parse_wish("tpot.p50 > 1.05x"), [runs(0.05, 0.06, spoils=busy)])
    assert found.outcome is Outcome.UNDECIDED
    assert "would fail, but B: busy-machine" in found.details[0]
    assert ask(parse_wish("tpot.p50 > 3x"), [runs(0.05, 0.06, spoils=busy)]).outcome is Outcome.PASSES


def test_the_worst_cell_decides_and_is_named() -> None:
    cells = [runs(0.05, 0.05, place="batch=1"), runs(0.05, 0.06, place="batch=4")]
    found = ask(parse_wish("tpot.p50 > 1.05x"), cells)
    assert found.outcome is Outcome.FAILS
    assert len(found.details) == 1
    assert found.details[0].startswith("B at batch=4: p50 of tpot is 1.2")


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        (Runs(a=result(times(0.05)), b={"x": 1}, place="b=4"), "B at b=4: there is no tpot.p50, and A has one"),
        (
            Runs(a=result(times(0.05)), b_lacks="it has no result: out of memory", place="b=4"),
            "B at b=4: there is no tpot.p50 (it has no result: out of memory), and A has one",
        ),
        (Runs(letter="C", refused="nothing was compared: no metric in common"), "C: nothing was compared: no metric"),
    ],
)
def test_a_candidate_that_lacks_what_a_has_fails_and_says_which(lacking: Runs, told: str) -> None:
    found = ask(parse_wish("tpot.p50 > 1.05x"), [runs(0.05, 0.05, place="b=1"), lacking])
    assert found.outcome is Outcome.FAILS
    assert found.details[0].startswith(told)


def test_what_only_the_candidate_has_is_said_and_not_asked_and_a_condition_asked_of_nothing_fails() -> None:
    more = Runs(b=result(times(0.09)), place="b=4", a_lacks="there is no such cell")
    found = ask(parse_wish("tpot.p50 > 1.05x"), [runs(0.05, 0.05, place="b=1"), more])
    assert found.outcome is Outcome.PASSES
    assert found.details == ("B at b=4: not asked: A has no tpot.p50 (there is no such cell)",)
    alone = ask(parse_wish("tpot.p50 > 1.05x"), [more])
    assert (alone.outcome, "asked of nothing" in alone.details[-1]) == (Outcome.FAILS, True)


def test_a_step_that_measures_something_else_is_asked_nothing_though_it_failed() -> None:
    check = Runs(a={"findings": 1}, b_lacks="it has no result: out of memory", place="b=1 1 check")
    assert ask(parse_wish("tpot.p50 > 1.05x"), [runs(0.05, 0.05), check]).outcome is Outcome.PASSES


def test_values_in_other_units_or_of_another_kind_are_no_share_of_each_other() -> None:
    both = runs(0.05, 0.05)
    assert both.b is not None
    other = {**both.b, "metrics": {"tpot": {**both.b["metrics"]["tpot"], "unit": "tok/s"}}}
    found = ask(parse_wish("tpot.p50 > 1.05x"), [Runs(a=both.a, b=other)])
    assert (found.outcome, "A tells samples in s, B samples in tok/s" in found.details[0]) == (Outcome.FAILS, True)


@pytest.mark.parametrize(("bound", "outcome"), [(80, Outcome.FAILS), (120, Outcome.PASSES)])
def test_an_absolute_condition_is_about_the_candidate_whatever_was_seen_of_a(bound: int, outcome: Outcome) -> None:
    throttled = (Spoil(side="A", word=Word.THROTTLED, detail="the clock fell"),)
    drifting = result([0.05 * (1 + place / 50) for place in range(100)])
    found = ask(parse_wish(f"tpot.p50 > {bound} ms"), [Runs(a=drifting, b=result(times(0.1)), spoils=throttled)])
    assert found.outcome is outcome
    own = (Spoil(side="B", word=Word.THROTTLED, detail="the clock fell"),)
    spoiled = ask(parse_wish(f"tpot.p50 > {bound} ms"), [Runs(a=drifting, b=result(times(0.1)), spoils=own)])
    assert (spoiled.outcome, "but B: throttled" in spoiled.details[0]) == (Outcome.UNDECIDED, True)


def test_an_absolute_condition_takes_the_interval_of_a_summary_without_samples() -> None:
    whole = result(times(0.1))
    del whole["metrics"]["tpot"]["samples"]
    for bound, outcome in ((80, Outcome.FAILS), (100, Outcome.UNDECIDED), (120, Outcome.PASSES)):
        assert ask(parse_wish(f"tpot.p50 > {bound} ms"), [Runs(a=whole, b=whole)]).outcome is outcome
    [told] = ask(parse_wish("tpot.p99 > 80 ms"), [Runs(a=whole, b=whole)]).details
    assert "p99 of tpot is" in told
    assert "but p99: too few samples" in told


@pytest.mark.parametrize(
    ("text", "found"), [("tpto.p50 > 1x", "did you mean 'tpot'"), ("tpot.p50 > 5 GiB", "is a time")]
)
def test_a_metric_that_nothing_has_and_a_unit_of_another_kind_are_usage_errors(text: str, found: str) -> None:
    with pytest.raises(UsageError, match=r"column 1: .*") as caught:
        ask(parse_wish(text), [runs(0.05, 0.06)])
    assert found in str(caught.value).lower()
