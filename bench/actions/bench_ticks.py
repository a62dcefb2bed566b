"""ticks: a job that does nothing but tell how far it is, ten times a second."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.jobs.run import Run

RATE = 10
"""Metrics a second."""


@dataclass(frozen=True, kw_only=True)
class Ticked:
    """How many metrics were told."""

    count: int


@action("ticks", result=Ticked)
@dataclass(frozen=True, kw_only=True)
class Ticks:
    """Report a metric ten times a second."""

    seconds: float = param("How long", default=60.0, ge=0, unit="s")

    def perform(self, run: Run) -> Ticked:
        """A metric that moves like a latency, and progress."""
        total = round(self.seconds * RATE)
        for number in range(total):
            run.progress("measure", number, total, "step")
            run.metric("tpot", 0.008 + 0.0004 * math.sin(number / 7), "s")
            time.sleep(1 / RATE)
        return Ticked(count=total)
