"""gpus: what the GPUs of this machine do right now, once or for as long as somebody looks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.gpu.telemetry import GpuSnapshot

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

DEMO_CARDS = 4
"""Made-up cards of `--demo`, unless HFBENCH_DEMO_GPUS says how many."""


@dataclass(frozen=True, kw_only=True)
class GpusResult(GpuSnapshot):
    """A snapshot of all GPUs; a value that could not be read is its reason."""

    def lines(self) -> list[str]:
        """One row a GPU with what is wrong below it, as wide as the terminal."""
        from hfbench.actions.gpus_text import plain_lines

        return plain_lines(self)


@action("gpus", result=GpusResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Gpus:
    """Show the GPUs: memory, utilisation, clocks, power, throttling, errors and processes."""

    watch: bool = param("Look again and again: a page that repaints, or JSON lines with --json", default=False)
    csv: bool = param("Print a header and one row a GPU and sample; unknown values are empty", default=False)
    demo: bool = param("Show made-up cards, marked as such", default=False)
    interval: float = param("Time between two samples", default=1.0, ge=0.25, le=3600, unit="s")
    count: int = param("Samples to take; 0 is one, or with --watch until it is interrupted", default=0, ge=0, le=10**9)

    @property
    def live(self) -> bool:
        """True when samples are to be printed as they come."""
        return self.watch or self.csv or self.count > 1

    def perform(self, run: Run) -> GpusResult:
        """Take one sample, or `count`, of which the last is the result."""
        if self.watch and not self.count:
            raise UsageError("watch has no end without count", where="gpus", remedy="give --count, or use a terminal")
        samples = self.samples()
        last = next(samples)
        for taken, sample in enumerate(samples, 2):
            last = sample
            run.progress("sample", taken, self.count)
        return last

    def samples(self) -> Iterator[GpusResult]:
        """As many samples as were asked for, `interval` apart; without an end when watching and no count is given."""
        from hfbench.gpu.telemetry import Sampler
        from hfbench.gpu.telemetry.demo import DEMO_GPUS, MOST, demo_cards

        told = os.environ.get(DEMO_GPUS, "").strip()
        if told and not told.isdecimal():
            remedy = f"give a number up to {MOST}, or unset it"
            raise UsageError(f"{told[:20]!r} is no number of cards", where=DEMO_GPUS, remedy=remedy)
        sampler = Sampler(demo=(demo_cards() or DEMO_CARDS) if self.demo else None)
        due, taken = time.monotonic(), 0
        try:
            while True:
                snapshot = sampler.sample()
                yield GpusResult(**{each.name: getattr(snapshot, each.name) for each in fields(snapshot)})
                taken += 1
                if taken >= self.count and not (self.watch and not self.count):
                    return
                due = max(due + self.interval, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        finally:
            sampler.close()

    def trouble(self, result: GpusResult) -> str:
        """Why there is no card."""
        return "" if result.devices else f"no GPU: {result.reason}"

    def frame(self, result: GpusResult, number: int, *, width: int, height: int, ascii: bool, color: bool) -> list[str]:
        """A sample as lines of a terminal of that many cells; of a table, the header comes with the first."""
        from hfbench.actions.gpus_text import csv_lines, watch_lines

        if self.csv:
            return csv_lines(result, header=number == 0)
        return watch_lines(result, width=width, height=height, ascii=ascii, color=color)
