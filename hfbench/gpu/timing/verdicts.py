"""Whether a measurement can be believed: a closed list of words, each with the next thing to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import drift, halves, median_interval, outliers
from hfbench.gpu.timing.stopping import MedianInterval, Stop
from hfbench.models.problem import counted

DRIFT_SHARE = 0.05
"""A change of the median worth a warning, when the intervals of both halves do not overlap either."""
OUTLIER_SHARE = 0.05
LEAST_FOR_OUTLIERS = 10
"""Fewer samples have no spread to speak of."""
BUSY_SHARE = 0.15
"""Share of the machine's CPUs that other processes may use before timings count as disturbed."""
FEW = 20


class Word(StrEnum):
    """Everything that can be said of a measurement."""

    STABLE = "stable"
    FEW_SAMPLES = "few-samples"
    INTERVAL_NOT_REACHED = "interval-not-reached"
    DRIFT = "drift"
    OUTLIERS = "outliers"
    BUSY_MACHINE = "busy-machine"
    OUTPUT_VARIES = "output-varies"
    NOT_FINITE = "not-finite"
    THROTTLED = "throttled"


NEXT: dict[Word, str] = {
    Word.STABLE: "nothing to do: compare it with another run",
    Word.FEW_SAMPLES: "raise budget or lower new_tokens, so that more iterations fit",
    Word.INTERVAL_NOT_REACHED: "raise budget, accept a wider ci, or quieten the machine",
    Word.DRIFT: "raise warmup; look at clocks and temperature, then run again",
    Word.OUTLIERS: "read p90 and p99 beside the median; look for periodic work on this machine",
    Word.BUSY_MACHINE: "stop the neighbours or wait, then run again; compare minima, not means",
    Word.NOT_FINITE: "run with dtype bf16 or fp32; the tokens of this run mean nothing",
    Word.THROTTLED: "raise the power limit or the cooling, lock the clocks lower, or wait; then run again",
    Word.OUTPUT_VARIES: "try attention eager or dtype fp32, to find the operation that is not deterministic",
}

CROWDED = (
    "it computed with {threads} threads where the others left {left} of {cpus} CPUs, and threads that share a CPU wait"
    " for each other: run again with --threads {left}, or stop the neighbours or wait"
)
"""What to try on a busy machine where the run computed with more threads than there were CPUs left."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One finding about a measurement: its word, what was seen, and the next thing to try."""

    word: Word
    detail: str
    next: str


def judge(
    watched: Sequence[Samples],
    *,
    rule: MedianInterval,
    stop: Stop,
    company: Company,
    varies: str = "",
    overflow: str = "",
    throttle: Mapping[str, float] | None = None,
    threads: int = 0,
) -> list[Verdict]:
    """All that speaks against the measurement, or the one verdict `stable`.

    `varies` and `overflow` are what the caller saw of unequal outputs and of logits that are not finite; `throttle` is
    the share of samples in which each reason slowed the card; `threads` is how many CPU threads computed, 0 on a GPU.
    """
    found = [
        (Word.NOT_FINITE, overflow),
        (Word.OUTPUT_VARIES, varies),
        (Word.THROTTLED, _throttled(throttle or {})),
        (Word.INTERVAL_NOT_REACHED, "" if stop is Stop.INTERVAL_REACHED else _joined(_wide(watched, rule))),
        (Word.FEW_SAMPLES, _joined(_few(watched))),
        (Word.DRIFT, _joined(_drifting(watched))),
        (Word.OUTLIERS, _joined(_outlying(watched))),
        (Word.BUSY_MACHINE, company.disturbance(BUSY_SHARE)),
    ]
    left = company.left_to(threads)
    remedies = NEXT | (
        {Word.BUSY_MACHINE: CROWDED.format(threads=threads, left=left, cpus=company.cpus)} if left else {}
    )
    against = [Verdict(word=word, detail=detail, next=remedies[word]) for word, detail in found if detail]
    if against:
        return against
    widest = max(samples.relative_interval() for samples in watched)
    detail = f"every median is known within {widest:.1%}"
    return [Verdict(word=Word.STABLE, detail=detail, next=NEXT[Word.STABLE])]


def spoiling(samples: Samples) -> list[Verdict]:
    """What the samples of one quantity say against it by themselves: drift and outliers; none when they are fine."""
    found = [(Word.DRIFT, _joined(_drifting([samples]))), (Word.OUTLIERS, _joined(_outlying([samples])))]
    return [Verdict(word=word, detail=detail, next=NEXT[word]) for word, detail in found if detail]


def _wide(watched: Sequence[Samples], rule: MedianInterval) -> Iterator[str]:
    for samples in watched:
        reached = samples.relative_interval()
        if median_interval(samples.values) is None:
            yield f"{samples.name} has no interval yet"
        elif reached > rule.width:
            yield f"{samples.name} within {reached:.1%}, asked {rule.width:.1%}"


def _few(watched: Sequence[Samples]) -> Iterator[str]:
    counts = {len(samples.values) for samples in watched}
    if min(counts) < FEW:
        yield f"p90 and p99 of {counted(min(counts), 'sample')} lie close to the slowest"


def _drifting(watched: Sequence[Samples]) -> Iterator[str]:
    for samples in watched:
        change = drift(samples.values)
        first, second = (median_interval(half) for half in halves(samples.values))
        if change is None or first is None or second is None:
            continue
        if abs(change) >= DRIFT_SHARE and not first.overlaps(second):
            yield f"{samples.name} of the second half is {change:+.1%} against the first"


def _outlying(watched: Sequence[Samples]) -> Iterator[str]:
    for samples in watched:
        count, taken = outliers(samples.values), len(samples.values)
        if taken >= LEAST_FOR_OUTLIERS and count / taken >= OUTLIER_SHARE:
            yield f"{count} of {taken} {samples.name} lie over 5 MAD from the median"


def _throttled(shares: Mapping[str, float]) -> str:
    told = ", ".join(f"{reason} in {share:.0%}" for reason, share in shares.items() if share > 0)
    return f"the card was slowed by {told} of the samples" if told else ""


def _joined(parts: Iterator[str]) -> str:
    return "; ".join(parts)
