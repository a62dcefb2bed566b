"""Times one piece of work on a stream: warm-up, calls for each sample, cold or warm cache, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from hfbench.gpu.timing.formulas import CALL
from hfbench.gpu.timing.machine import Watch
from hfbench.gpu.timing.samples import Samples, Summary
from hfbench.gpu.timing.stopping import MedianInterval, Stop
from hfbench.gpu.timing.verdicts import Verdict, Word, judge

Work = Callable[[], object]

WARM_SECONDS = 0.025
"""Spent on calls that do not count, as `triton.testing.do_bench` does."""
LEAST_WARM = 3
RESOLUTIONS = 200
"""A sample lasts at least so many steps of the clock: what a mark adds or loses is then half a percent."""
MOST_CALLS = 4096
BLOCK_SECONDS = 0.005
"""Samples are taken in blocks of about so long, with one look at the stopping rule after each."""
LARGEST_BLOCK = 100

NEXT: dict[Word, str] = {
    Word.FEW_SAMPLES: "raise budget, so that more samples fit",
    Word.INTERVAL_NOT_REACHED: "raise budget, accept a wider ci, or quieten the machine",
    Word.DRIFT: "look at clocks and temperature, then run again",
}
"""What to try next, where that is otherwise than for a model."""


class Stream(Protocol):
    """A queue of work with a clock: the CPU's is a function call, a GPU's is CUDA's."""

    @property
    def name(self) -> str:
        """`cpu` or `cuda`."""

    @property
    def resolution(self) -> float:
        """Seconds that the clock can tell apart."""

    @property
    def flush_bytes(self) -> int:
        """Bytes written to push everything else out of the last cache; 0 where that cannot be."""

    def times(self, work: Work, *, count: int, calls: int, cold: bool) -> list[float]:
        """`count` samples, each the seconds of one call out of `calls` between two marks; a flush before, if cold."""

    def captured(self, work: Work, calls: int) -> Work:
        """Work that replays `calls` calls as one graph; NoGraph where that cannot be."""


class NoGraph(Exception):
    """The stream has no graphs, or the work cannot be captured."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The time of one call: all samples in seconds, and what speaks against them."""

    cache: str
    """`cold` or `warm`."""
    graph: bool
    calls: int
    """Calls for each sample."""
    stop: str
    time: Summary
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median."""
        return self.time.p50


def measure(stream: Stream, work: Work, *, cold: bool, graph: bool, rule: MedianInterval) -> Timing:
    """Time the work until the rule speaks. NoGraph when a graph is asked for and cannot be had.

    A cold sample is one call behind a flush; a warm one as many as the clock needs, one right after the other.
    """
    single = _settle(stream, work)
    calls = 1 if cold else _calls(stream, work, single)
    if graph:
        work = stream.captured(work, calls)
        _settle(stream, work)
    inside = 1 if graph else calls
    each = calls if graph else 1
    samples, watch, began, stop = Samples("times", CALL), Watch(), time.perf_counter(), None
    lasts = _with_flush(stream, work) if cold else single * calls
    block = max(1, min(LARGEST_BLOCK, rule.most, math.ceil(BLOCK_SECONDS / max(lasts, stream.resolution))))
    while stop is None:
        taken = stream.times(work, count=min(block, rule.most - len(samples.values)), calls=inside, cold=cold)
        samples.extend(seconds / each for seconds in taken)
        stop = rule.verdict([samples], time.perf_counter() - began)
    return Timing(
        cache="cold" if cold else "warm",
        graph=graph,
        calls=calls,
        stop=str(stop),
        time=samples.summary(),
        verdicts=_verdicts(samples, rule, stop, watch),
    )


def _settle(stream: Stream, work: Work) -> float:
    """Call it until it is warm; the seconds of the quickest call."""
    best, spent, turns = math.inf, 0.0, 0
    while turns < LEAST_WARM or (spent < WARM_SECONDS and turns < MOST_CALLS):
        (seconds,) = stream.times(work, count=1, calls=1, cold=False)
        best, spent, turns = min(best, seconds), spent + seconds, turns + 1
        if turns >= LEAST_WARM and seconds <= stream.resolution:
            break
    return best


def _with_flush(stream: Stream, work: Work) -> float:
    """Seconds that a cold sample takes; most of them, on a CPU with a large cache, are its flush."""
    began = time.perf_counter()
    stream.times(work, count=1, calls=1, cold=True)
    return time.perf_counter() - began


def _calls(stream: Stream, work: Work, single: float) -> int:
    """How many calls make a sample that the clock can measure."""
    wanted, calls = RESOLUTIONS * stream.resolution, 1
    lasts = single
    while lasts < wanted and calls < MOST_CALLS:
        calls = min(MOST_CALLS, max(2 * calls, math.ceil(calls * wanted / max(lasts, stream.resolution))))
        lasts = calls * min(stream.times(work, count=2, calls=calls, cold=False))
    return calls


def _verdicts(samples: Samples, rule: MedianInterval, stop: Stop, watch: Watch) -> list[Verdict]:
    found = judge([samples], rule=rule, stop=stop, company=watch.company())
    return [replace(each, next=NEXT.get(each.word, each.next)) for each in found]
