"""FASTER, SLOWER, SAME or UNDECIDED: one metric of B against A, and what spoils the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.compare.intervals import (
    RUN_TO_RUN,
    interval_of,
    paired_ratios,
    ratio_interval,
    ratio_of,
    told_interval,
)
from hfbench.compare.metrics import Metric, better_of, number
from hfbench.compare.result import MetricVerdict
from hfbench.compare.result import Word as Said
from hfbench.gpu.timing.formulas import RATIO
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import Interval, median
from hfbench.gpu.timing.verdicts import Word, spoiling
from hfbench.jobs.doubt import verdicts_of

WITHIN = 0.02
"""A difference that does not matter, as a share, unless another is asked for."""
CLEAR = 1.25
"""A ratio that drift or outliers do not explain: beyond it a spoiled run still tells who is faster."""
HARD = (Word.THROTTLED, Word.NOT_FINITE)
"""What spoils every difference: the card was another card, or the work was other work."""
OF_THE_RUN = (Word.THROTTLED, Word.NOT_FINITE, Word.BUSY_MACHINE)
"""What is told of a run as a whole; drift and outliers are looked for in each metric's own samples."""
BEYOND = "the ratio is beyond what a number can hold"
IN_TURNS, APART, FROM_INTERVALS, SINGLE = "in turns", "apart", "from intervals", "single figures"


@dataclass(frozen=True, kw_only=True)
class Spoil:
    """One thing that speaks against a metric: whose (`A`, `B` or `both`), the word, and what was seen."""

    side: str
    word: Word
    detail: str
    bound: float = CLEAR
    """The ratio that it does not explain: a difference beyond it stands."""

    def __str__(self) -> str:
        return f"{self.side}: {self.word}: {self.detail}"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A statistic of both runs with the interval of its ratio, or the reason there is none."""

    a: float
    b: float
    ratio: float | None
    interval: Interval | None
    method: str
    reason: str = ""


def judge_metric(
    a: Metric, b: Metric, *, paired: bool = False, spoils: Sequence[Spoil] = (), within: float = WITHIN
) -> MetricVerdict:
    """B against A by their medians; `spoils` are those of the runs as a whole, those of the samples are found here.

    `paired` samples were taken in turns, round by round: what slows a round slows both, and spoils nothing.
    """
    found = estimate(a, b, "p50", paired=paired)
    against = [*spoils, *_own_spoils(a, b, paired=paired)]
    word = word_of(found.interval, better=a.better, within=within)
    spoiled, reason, would_be = word, found.reason, ""
    if word is not Said.UNDECIDED and spoilt(found.interval, against):
        spoiled, would_be = Said.UNDECIDED, str(word)
        reason = f"{against[0].word} spoils it"
    elif word is Said.UNDECIDED and not reason:
        reason = _why(found, within)
    return MetricVerdict(
        metric=a.name,
        unit=a.unit,
        better=a.better,
        a=found.a,
        b=found.b,
        ratio=found.ratio,
        low=found.interval.low if found.interval else None,
        high=found.interval.high if found.interval else None,
        word=spoiled,
        method=found.method,
        n_a=a.count,
        n_b=b.count,
        reason=reason,
        spoiled=tuple(map(str, against)),
        would_be=would_be,
    )


def estimate(a: Metric, b: Metric, name: str, *, paired: bool = False) -> Estimate:
    """A statistic (`p50`, `p99`, `mean`) of B as a share of A's, with the interval of that share.

    Both sides of the estimate are in the metric's unit. ValueError when a side has no such statistic.
    """
    one, other = a.statistic(name), b.statistic(name)
    if one is None or other is None:
        raise ValueError(f"{a.name} has no {name}")
    rounds = paired_ratios(a.taken, b.taken) if paired and name in ("p50", "mean") else []
    if rounds:
        return Estimate(
            a=one,
            b=other,
            ratio=median(rounds),
            interval=(interval := interval_of(rounds, "p50")),
            method=IN_TURNS,
            reason="" if interval else _few(len(rounds), "round"),
        )
    ratio = ratio_of(one, other)
    method = APART if a.values and b.values else FROM_INTERVALS
    around_a, around_b = (around(metric, name) for metric in (a, b))
    if ratio is None:
        return Estimate(a=one, b=other, ratio=None, interval=None, method=method, reason=_no_ratio(one))
    if around_a is None or around_b is None:
        reason = without_interval(name, min(a.count, b.count))
        return Estimate(a=one, b=other, ratio=ratio, interval=None, method=method, reason=reason)
    interval = ratio_interval(one, around_a, other, around_b)
    return Estimate(
        a=one,
        b=other,
        ratio=ratio,
        interval=interval,
        method=method,
        reason="" if interval else "an interval reaches zero, or the ratio what a number can hold",
    )


def around(metric: Metric, name: str) -> Interval | None:
    """The interval of a statistic of one run: by its samples, and without them that which the summary tells of p50."""
    if metric.values:
        return interval_of(metric.values, name)
    return told_interval(metric) if name == "p50" else None


def without_interval(name: str, count: int) -> str:
    """Why a statistic of so many samples has no interval."""
    return f"{name} has no interval" if name in ("min", "max", "std") else f"{name}: {_few(count, 'sample')}"


def word_of(interval: Interval | None, *, better: str, within: float) -> Said:
    """What an interval of B / A says: all of it must lie within the share that does not matter, or all of it beyond.

    UNDECIDED where nobody said which way is better.
    """
    if interval is None or not better:
        return Said.UNDECIDED
    least, most = 1 - within, 1 / (1 - within)
    if least <= interval.low and interval.high <= most:
        return Said.SAME
    if interval.high < least:
        return Said.FASTER if better == "lower" else Said.SLOWER
    if interval.low > most:
        return Said.SLOWER if better == "lower" else Said.FASTER
    return Said.UNDECIDED


def spoils_of_run(result: Mapping[str, Any] | None, side: str) -> list[Spoil]:
    """What a result says against itself as a whole: throttling, numbers that are not finite, a busy machine."""
    found = []
    for each in verdicts_of(result):
        word = each.get("word")
        if word in OF_THE_RUN:
            bound = _crowded(result or {}) if word == Word.BUSY_MACHINE else CLEAR
            found.append(Spoil(side=side, word=Word(word), detail=str(each.get("detail", "")), bound=bound))
    return found


def _crowded(result: Mapping[str, Any]) -> float:
    """The ratio beyond which neighbours explain nothing: who shares CPUs with others that keep a part `s` of them busy
    may run 1 / (1 - s) times as long. Infinite where nobody counted."""
    machine = result.get("machine")
    told = machine if isinstance(machine, Mapping) else {}
    others, cpus = number(told.get("others_cpus")), number(told.get("cpus"))
    if others is None or not cpus or others >= cpus:
        return math.inf
    return CLEAR / (1 - others / cpus)


def in_turns(spoils: Iterable[Spoil]) -> list[Spoil]:
    """Of what spoils runs, that which also spoils runs in turns: a neighbour slows both alike, a limit may not."""
    return [each for each in spoils if each.word in HARD]


def judge_single(name: str, a: float, b: float, unit: str) -> MetricVerdict:
    """Two single figures: the same, or not decided, as nothing tells how far they can be trusted."""
    ratio = ratio_of(a, b)
    exact = a == b
    return MetricVerdict(
        metric=name,
        unit=unit,
        better=better_of(name, unit),
        a=a,
        b=b,
        ratio=ratio,
        low=1.0 if exact else None,
        high=1.0 if exact else None,
        word=Said.SAME if exact else Said.UNDECIDED,
        method=SINGLE,
        n_a=1,
        n_b=1,
        reason="" if exact else "a single figure has no interval",
    )


def method_of(within: float, *, turns: Sequence[bool]) -> str:
    """How verdicts were found, in a sentence or two."""
    told = []
    if not all(turns):
        told.append(f"runs apart: the ratio of medians, with {RUN_TO_RUN:.0%} for each run as two of one thing differ")
    if any(turns):
        told.append("runs in turns: the median of the ratios of the rounds")
    return (
        f"{'; '.join(told)}; 95 % intervals, the wider of order statistics and blocks in time, must lie beyond"
        f" {within:.0%} as a whole, or within it for SAME"
    )


def _own_spoils(a: Metric, b: Metric, *, paired: bool) -> list[Spoil]:
    """Drift and outliers of the samples of both; of runs in turns the drift of the ratio alone: a round that was
    disturbed is an outlier of the ratio, either way, and its median stays."""
    if paired:
        ratios = Samples(f"{a.name} ratio", RATIO, paired_ratios(a.taken, b.taken))
        return [
            Spoil(side="both", word=each.word, detail=each.detail)
            for each in spoiling(ratios)
            if each.word is Word.DRIFT
        ]
    told = {side: Samples(each.name, RATIO, list(each.values)) for side, each in (("A", a), ("B", b))}
    return [
        Spoil(side=side, word=each.word, detail=each.detail) for side, kept in told.items() for each in spoiling(kept)
    ]


def spoilt(interval: Interval | None, spoils: Sequence[Spoil], *, bound: float = 1.0) -> bool:
    """Whether what speaks against it outweighs how far an interval lies from a bound."""
    if not spoils:
        return False
    if interval is None:
        return True
    explained = max(math.inf if each.word in HARD else each.bound for each in spoils)
    return not (interval.low >= bound * explained or interval.high <= bound / explained)


def _why(found: Estimate, within: float) -> str:
    """Why an interval says nothing: it holds both sides of what would matter."""
    if found.interval is None:
        return found.reason or "there is no interval"
    more = "more rounds" if found.method == IN_TURNS else "more samples, or runs in turns,"
    return f"the interval reaches over the border of {within:.0%}; {more} would tell"


def _no_ratio(a: float) -> str:
    return BEYOND if a else "A is zero"


def _few(count: int, what: str) -> str:
    return f"too few {what}s ({count})"
