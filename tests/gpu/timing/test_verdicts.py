"""What is said of a measurement."""

from __future__ import annotations

import random

import pytest

from hfbench.gpu.timing.formulas import TPOT
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import MedianInterval, Stop
from hfbench.gpu.timing.verdicts import NEXT, Verdict, Word, judge

ALONE = Company(cpus=8, load_before=0.1, load_after=0.2, others_cpus=0.0)
STEADY = [1 + random.Random(3).gauss(0, 0.002) for _ in range(40)]


def said(values: list[float], *, stop: Stop = Stop.INTERVAL_REACHED, company: Company = ALONE) -> list[Verdict]:
    return judge([Samples("tpot", TPOT, values)], rule=MedianInterval(), stop=stop, company=company)


def words(values: list[float], **told: object) -> set[Word]:
    return {verdict.word for verdict in said(values, **told)}  # type: ignore[arg-type]


def test_every_word_has_a_next_thing_to_try() -> None:
    assert set(NEXT) == set(Word)
    assert all(NEXT.values())


def test_steady_samples_on_a_quiet_machine_are_stable() -> None:
    jittered = [1 + (number * 7 % 11 - 5) / 1000 for number in range(40)]
    assert words(jittered) == {Word.STABLE}


def test_an_interval_that_was_not_reached_is_told_with_both_numbers() -> None:
    [first, *_] = said([1.0, 2.0, 3.0] * 10, stop=Stop.BUDGET_SPENT)
    assert first.word is Word.INTERVAL_NOT_REACHED
    assert first.detail == "tpot within 50.0%, asked 2.0%"


def test_one_sample_is_never_called_stable() -> None:
    assert words([1.0], stop=Stop.BUDGET_SPENT) == {Word.INTERVAL_NOT_REACHED, Word.FEW_SAMPLES}


def test_a_slowdown_in_the_second_half_is_drift() -> None:
    rising = [1 + number % 3 / 1000 for number in range(20)] + [1.2 + number % 3 / 1000 for number in range(20)]
    assert Word.DRIFT in words(rising)


def test_wide_noise_is_not_taken_for_drift() -> None:
    source = random.Random(1)
    assert Word.DRIFT not in words([source.uniform(1, 3) for _ in range(24)])


def test_many_far_samples_are_outliers_and_one_in_a_hundred_is_not() -> None:
    quiet = [1 + number % 5 / 1000 for number in range(99)]
    assert Word.OUTLIERS not in words([*quiet, 9.0])
    assert Word.OUTLIERS in words([*quiet[:50], 9.0, 9.0, 9.0, 9.0])


def test_five_samples_are_too_few_to_call_one_an_outlier() -> None:
    assert Word.OUTLIERS not in words([1.0, 1.001, 1.002, 1.003, 9.0], stop=Stop.BUDGET_SPENT)


@pytest.mark.parametrize(
    ("others", "load", "busy"), [(3.0, 0.0, True), (0.2, 50.0, False), (None, 50.0, True), (None, 1.0, False)]
)
def test_neighbours_are_told_by_their_cpu_time_and_else_by_the_load(
    others: float | None, load: float, busy: bool
) -> None:
    company = Company(cpus=8, load_before=load, load_after=load, others_cpus=others)
    assert (Word.BUSY_MACHINE in words(STEADY, company=company)) is busy


@pytest.mark.parametrize(
    ("cpus", "threads", "others", "load", "left"),
    [
        (2, 2, 0.9, 9.0, 1),
        (2, 2, 2.4, 9.0, 1),
        (16, 16, 5.5, 9.0, 10),
        (2, 2, None, 3.0, 1),
        (2, 1, 0.9, 9.0, 0),
        (16, 8, 5.5, 9.0, 0),
        (2, 0, 0.9, 9.0, 0),
    ],
)
def test_a_run_that_took_more_threads_than_the_neighbours_left_cpus_is_told_how_many_to_take(
    cpus: int, threads: int, others: float | None, load: float, left: int
) -> None:
    company = Company(cpus=cpus, load_before=load, load_after=load, others_cpus=others)
    watched = [Samples("tpot", TPOT, STEADY)]
    found = judge(watched, rule=MedianInterval(), stop=Stop.INTERVAL_REACHED, company=company, threads=threads)
    [busy] = [each for each in found if each.word is Word.BUSY_MACHINE]
    assert (f"with {threads} threads where the others left {left} of {cpus} CPUs" in busy.next) is bool(left)
    assert (f"--threads {left}," in busy.next) is bool(left)
    assert "stop the neighbours or wait" in busy.next


def test_unequal_outputs_and_broken_logits_come_first() -> None:
    verdicts = judge(
        [Samples("tpot", TPOT, STEADY)],
        rule=MedianInterval(),
        stop=Stop.INTERVAL_REACHED,
        company=ALONE,
        varies="2 of 9 iterations gave other tokens than the first",
        overflow="logits were NaN",
    )
    assert [verdict.word for verdict in verdicts] == [Word.NOT_FINITE, Word.OUTPUT_VARIES]


def test_a_card_that_was_slowed_spoils_the_verdict_with_the_evidence() -> None:
    def judged(throttle: dict[str, float] | None) -> list[Verdict]:
        watched = [Samples("tpot", TPOT, [1 + (number * 7 % 11 - 5) / 1000 for number in range(40)])]
        return judge(watched, rule=MedianInterval(), stop=Stop.INTERVAL_REACHED, company=ALONE, throttle=throttle)

    [found] = judged({"sw_power_cap": 0.4, "hw_thermal": 0.05})
    assert found.word is Word.THROTTLED
    assert found.detail == "the card was slowed by sw_power_cap in 40%, hw_thermal in 5% of the samples"
    assert [verdict.word for verdict in judged({})] == [verdict.word for verdict in judged(None)] == [Word.STABLE]
