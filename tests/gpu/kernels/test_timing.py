"""The timer: how many calls make a sample, what is cold, what a graph holds, when it stops and what it says then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from pathlib import Path

import pytest

from hfbench.gpu.kernels.timing import RESOLUTIONS, NoGraph, Work, measure
from hfbench.gpu.timing.stopping import MedianInterval
from hfbench.gpu.timing.verdicts import Word

RULE = MedianInterval(width=0.01, budget=5.0, most=200, least=20)


class ScriptedStream:
    """A stream on which no time passes: a call takes `seconds`, a cold one what is next in `cold`, while that lasts.
    It notes what it was asked to do."""

    name = "scripted"
    resolution = 5e-7
    flush_bytes = 0

    def __init__(self, seconds: float, cold: Sequence[float] = ()) -> None:
        self._seconds, self._cold = seconds, chain(cold, repeat(seconds))
        self.asked: list[tuple[int, bool]] = []
        self.captures: list[int] = []
        self._replays = 1

    def times(self, work: Work, *, count: int, calls: int, cold: bool) -> list[float]:
        self.asked += [(calls, cold)] * count
        return [(next(self._cold) if cold else self._seconds) * self._replays for _ in range(count)]

    def captured(self, work: Work, calls: int) -> Work:
        self.captures.append(calls)
        self._replays = calls
        return work


def nothing() -> None:
    """Work that is not looked at."""


def test_a_warm_sample_is_as_many_calls_as_the_clock_needs() -> None:
    stream = ScriptedStream(1e-6)
    timing = measure(stream, nothing, cold=False, graph=False, rule=RULE)
    assert timing.calls * 1e-6 >= RESOLUTIONS * stream.resolution
    assert timing.calls < 2 * RESOLUTIONS
    assert stream.asked[-1] == (timing.calls, False)
    assert timing.seconds == pytest.approx(1e-6)


def test_a_cold_sample_is_one_call_behind_a_flush() -> None:
    stream = ScriptedStream(1e-6)
    timing = measure(stream, nothing, cold=True, graph=False, rule=RULE)
    assert (timing.calls, timing.cache) == (1, "cold")
    assert stream.asked[-timing.time.n :] == [(1, True)] * timing.time.n


def test_work_that_lasts_is_called_once_a_sample() -> None:
    assert measure(ScriptedStream(0.01), nothing, cold=False, graph=False, rule=RULE).calls == 1


def test_a_graph_holds_the_calls_of_a_sample_and_its_time_is_that_of_one() -> None:
    stream = ScriptedStream(1e-6)
    timing = measure(stream, nothing, cold=False, graph=True, rule=RULE)
    assert stream.captures == [timing.calls]
    assert stream.asked[-1] == (1, False)
    assert timing.seconds == pytest.approx(1e-6)


def test_it_stops_when_the_median_is_known_and_calls_that_stable() -> None:
    timing = measure(ScriptedStream(0.002), nothing, cold=True, graph=False, rule=RULE)
    assert timing.stop == "interval-reached"
    assert timing.time.n >= RULE.least
    assert {verdict.word for verdict in timing.verdicts} <= {Word.STABLE, Word.BUSY_MACHINE}


def test_it_takes_no_more_samples_than_it_may() -> None:
    rule = MedianInterval(width=1e-6, budget=5.0, most=50, least=20)
    timing = measure(ScriptedStream(0.001, [0.001, 0.002] * 50), nothing, cold=True, graph=False, rule=rule)
    assert (timing.time.n, timing.stop) == (50, "max-iterations")
    assert Word.INTERVAL_NOT_REACHED in {verdict.word for verdict in timing.verdicts}


def test_a_clock_that_slows_down_is_told_as_drift_with_what_to_look_at() -> None:
    slower = ScriptedStream(0.001, [0.001 * (1 + place / 100) for place in range(200)])
    rule = MedianInterval(width=1e-9, budget=5.0, most=200, least=20)
    timing = measure(slower, nothing, cold=True, graph=False, rule=rule)
    (drift,) = [verdict for verdict in timing.verdicts if verdict.word == Word.DRIFT]
    assert "clocks" in drift.next


@pytest.fixture
def cpu() -> Callable[[], object]:
    """The stream of the CPU, without which nothing below can run."""
    pytest.importorskip("torch")
    from hfbench.gpu.kernels.timing_streams import CpuStream

    return CpuStream


def test_the_cpu_is_timed_for_real(cpu: Callable[[], object]) -> None:
    rule = MedianInterval(width=0.5, budget=2.0, most=20, least=6)
    timing = measure(cpu(), lambda: time.sleep(0.003), cold=True, graph=False, rule=rule)  # type: ignore[arg-type]
    assert 0.003 <= timing.time.min < 0.02
    quick = measure(cpu(), nothing, cold=False, graph=False, rule=rule)  # type: ignore[arg-type]
    assert quick.calls > 10
    assert quick.seconds < 1e-4


def test_the_cpu_has_no_graphs(cpu: Callable[[], object]) -> None:
    with pytest.raises(NoGraph, match="the CPU has no graphs"):
        measure(cpu(), nothing, cold=False, graph=True, rule=RULE)  # type: ignore[arg-type]


def test_what_is_flushed_is_as_large_as_the_largest_cache(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from hfbench.gpu.kernels.timing_streams import LARGEST_FLUSH, USUAL_CACHE, last_cache

    assert last_cache(tmp_path) == USUAL_CACHE
    for place, size in enumerate(("32K", "1M", "96M", "odd")):
        (tmp_path / f"index{place}").mkdir()
        (tmp_path / f"index{place}" / "size").write_text(f"{size}\n")
    assert last_cache(tmp_path) == 96 * 2**20
    (tmp_path / "index3" / "size").write_text("4096M\n")
    assert last_cache(tmp_path) == LARGEST_FLUSH
