"""The result of bench.generate, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.gpu.memory import PeakMemory
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.roofline import Roofline
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Summary
from hfbench.gpu.timing.verdicts import Verdict
from hfbench.jobs.doubt import SIGN, doubt, samples_for
from hfbench.line_width import cut, cut_end, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds, show_value

LABEL = 9
NAMES = {"throughput": "tok/s", "prefill_rate": "prefill tok/s"}
"""Metrics whose unit stands in their name."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Everything measured, each with its raw samples: seconds for times, tokens a second for rates."""

    ttft: Summary
    tpot: Summary
    itl: Summary
    e2e: Summary
    throughput: Summary
    prefill_rate: Summary


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Iterations that were run and not counted: how many were asked for, and how long each took end to end."""

    asked: int
    iterations: int
    seconds: list[float]


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a mode was compared with before it was timed. Errors are shares of the largest logit of the reference."""

    against: str
    steps: int
    largest_error: Value
    allowed: float
    same_tokens: int
    """Likeliest tokens that were the same; a tie may fall either way."""
    of_tokens: int
    graph: str = ""
    """What else a captured graph passed."""

    @property
    def sentence(self) -> str:
        """By what, and how near."""
        far = self.largest_error
        near = far.reason if isinstance(far, Unavailable) else f"off by {far:.1e} at most, allowed {self.allowed:.1e}"
        told = f"{self.against}, {counted(self.steps, 'step')}: {near}; {self.same_tokens} of {self.of_tokens} tokens"
        return f"{told}; {self.graph}" if self.graph else told


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The compilation of the decode step by torch.compile, first call included. `seconds` is what all of it took.

    Cold is without compiled code on disk, warm from torch's cache: what a second process would wait for, imports apart.
    """

    mode: str
    cold_seconds: Value
    warm_seconds: Value
    graphs: int
    graph_breaks: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Mode and times."""
        times = [
            f"{name} {each.reason if isinstance(each, Unavailable) else show_seconds(each)}"
            for name, each in (("cold", self.cold_seconds), ("warm", self.warm_seconds))
        ]
        parts = f"{counted(self.graphs, 'graph')}, {counted(self.graph_breaks, 'break')}"
        return f"mode {self.mode}: {', '.join(times)}; {parts}"


@dataclass(frozen=True, kw_only=True)
class EngineUsed:
    """The engine that a mode drove; `id` is made of all that determines it, `verdict` that of its proof."""

    folder: str
    id: str
    builder: str
    dtype: str
    verdict: str
    load_seconds: float
    notes: tuple[str, ...] = ()
    """What its runtime had to say."""

    @property
    def sentence(self) -> str:
        """What it is and how long it took to load."""
        told = (
            f"{self.builder} {self.id}, {self.verdict} when it was built, loaded in {show_seconds(self.load_seconds)}"
        )
        return "; ".join([told, *self.notes])


@dataclass(frozen=True, kw_only=True)
class GenerateResult:
    """One measurement of prefill and decode. Times are seconds; `output_ids` has one list for each sequence."""

    model: str
    folder: str
    device: str
    device_name: str
    dtype: str
    attention: str
    mode: str
    batch: int
    prompt_tokens: int
    new_tokens: int
    seed: int
    threads: int
    load_seconds: float
    warmup: WarmUp
    iterations: int
    measured_seconds: float
    stop_reason: str
    ci: float
    budget: float
    metrics: Metrics
    verdicts: list[Verdict]
    machine: Company
    peak_memory: PeakMemory
    output_ids: list[list[int]]
    output_text: str
    notes: list[str]
    gpu: GpuUse | None = None
    """What the card did while it was measured; None on the CPU."""
    verified: Verified | None = None
    """What the mode was compared with before it was timed; None for eager, which is the reference."""
    compiled: Compiled | None = None
    engine: EngineUsed | None = None
    """The engine, for modes that name one."""
    roofline: Roofline | None = None
    """How near decoding came to what the device can do; None in results that are older than this field."""

    @property
    def headline(self) -> str:
        """The figures this measurement is remembered by."""
        tpot, throughput = self.metrics.tpot, self.metrics.throughput
        told = f"tpot {show_seconds(tpot.p50)}{self._doubt(tpot)}"
        return f"{told}  {show_value(throughput.p50, 'tok/s')}{self._doubt(throughput)}"

    def _doubt(self, summary: Summary) -> str:
        """The sign of doubt where anything speaks against a median."""
        words = (each.word for each in self.verdicts)
        return SIGN if doubt(summary.n, interval=summary.ci_low is not None, verdicts=words) else ""

    def lines(self) -> list[str]:
        """The result for people, as wide as the terminal."""
        return [
            *self._setting(),
            "",
            *_table(self.metrics),
            "",
            *self._verdicts(),
            *self._memory(),
            *(_wrapped("gpu", self.gpu.sentence) if self.gpu else []),
            *(_wrapped("checked", self.verified.sentence) if self.verified else []),
            *(_wrapped("compiled", self.compiled.sentence) if self.compiled else []),
            *(_wrapped("engine", self.engine.sentence) if self.engine else []),
            *(_wrapped("roofline", self.roofline.sentence) if self.roofline else []),
            *(line for note in self.notes for line in _wrapped("note", note)),
            cut_end(f"output   {printable(self.output_text)}"),
        ]

    def _setting(self) -> list[str]:
        where = self.device if self.device == self.device_name else f"{self.device} {self.device_name}"
        return [
            cut(f"model    {printable(self.model)}"),
            cut_end(
                f"run      {printable(where)}, {self.dtype}, {self.attention}, {self.mode},"
                f" {counted(self.threads, 'thread')}"
            ),
            f"shape    batch {self.batch}, {counted(self.prompt_tokens, 'prompt token')},"
            f" {counted(self.new_tokens, 'new token')}",
            cut_end(
                f"taken    {counted(self.iterations, 'iteration')} in {show_seconds(self.measured_seconds)}"
                f" after {self.warmup.iterations} warm-up; stopped: {self.stop_reason}"
            ),
        ]

    def _verdicts(self) -> list[str]:
        told = []
        for verdict in self.verdicts:
            told += _wrapped("verdict", f"{verdict.word}: {verdict.detail}")
            told += _wrapped("", f"next: {verdict.next}")
        return told

    def _memory(self) -> list[str]:
        peak = self.peak_memory
        parts = [f"{show_bytes(peak.rss_bytes)} resident" if peak.rss_bytes else "resident unknown"]
        if peak.cuda_allocated_bytes is not None and peak.cuda_reserved_bytes is not None:
            parts.append(f"CUDA {show_bytes(peak.cuda_allocated_bytes)} allocated")
            parts.append(f"{show_bytes(peak.cuda_reserved_bytes)} reserved")
        return [cut_end(f"memory   peak {', '.join(parts)}; loaded in {show_seconds(self.load_seconds)}")]


def _table(metrics: Metrics) -> list[str]:
    """Rows of at most 80 cells; numbers are right-aligned and never cut."""
    rows = [f"{'metric':<14}{'p50':>10}{'p90':>10}{'p99':>10}  {'95% of median':<23}{'n':>6}"]
    for name in ("ttft", "tpot", "itl", "e2e", "throughput", "prefill_rate"):
        summary: Summary = getattr(metrics, name)
        cells = "".join(f"{_statistic(summary, name):>10}" for name in ("p50", "p90", "p99"))
        rows.append(f"{NAMES.get(name, name):<14}{cells}  {_interval(summary):<23}{summary.n:>6}")
    return rows


def _statistic(summary: Summary, name: str) -> str:
    """A statistic, or how many samples there are where it takes more."""
    value: float = getattr(summary, name)
    return _shown(value, summary.unit) if summary.n >= samples_for(name) else f"n={summary.n}"


def _wrapped(label: str, text: str) -> list[str]:
    """A labelled sentence over as many lines as it takes."""
    return paragraph(printable(text), first=f"{label:<{LABEL}}", later=" " * LABEL)


def _interval(summary: Summary) -> str:
    if summary.ci_low is None or summary.ci_high is None:
        return "too few samples"
    return f"{_shown(summary.ci_low, summary.unit)} .. {_shown(summary.ci_high, summary.unit)}"


def _shown(value: float, unit: str) -> str:
    return show_seconds(value) if unit == "s" else show_value(value, "")
