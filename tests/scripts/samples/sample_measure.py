"""sample.measure: gives figures at once, in this process, and can misbehave."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import MissingError
from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One metric."""

    p50: float
    p99: float
    n: int
    samples: list[float]
    unit: str


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All metrics."""

    tpot: Figure
    rate: Figure


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured."""

    model: str
    batch: int
    stable: bool
    note: str | None
    load_seconds: float
    peak_bytes: int
    metrics: Figures
    findings: dict[str, int]
    output_ids: list[int]
    extra: dict[str, Any] = field(default_factory=dict)


@action("sample.measure", result=Measured, inline=True)
@dataclass(frozen=True, kw_only=True)
class Measure:
    """Give figures that never change."""

    model: str = param("Name of a model", kind="model", positional=True)
    batch: int = param("Sequences in flight", default=1, ge=1, le=64)
    dtype: Literal["bf16", "fp32"] = param("Weights as", default="bf16")
    share: float = param("A share", default=0.5, ge=0, le=1)
    budget: float = param("Time to spend", default=1.0, kind="duration", unit="s")
    ids: tuple[int, ...] = param("Numbers", default=())
    text: str = param("Any text", default="")
    out: Path | None = param("A file", default=None, kind="path")
    quick: bool = param("Be quick", default=True)
    token: str = param("A secret", default="", secret=True)
    does: Literal["", "sleep", "bug", "missing", "print", "warn"] = param("How to misbehave", default="")

    def perform(self, run: Run) -> Measured:
        """Misbehave if asked to, else answer."""
        match self.does:
            case "sleep":
                time.sleep(30)
            case "bug":
                raise ZeroDivisionError("a bug\nof two lines")
            case "missing":
                raise MissingError("there is no card here")
            case "print":
                print("this must not reach the results")
            case "warn":
                run.log("the fan is loud", "warning")
        return Measured(
            model=self.model,
            batch=self.batch,
            stable=True,
            note=None,
            load_seconds=1.5,
            peak_bytes=3 * 2**30,
            metrics=Figures(
                tpot=Figure(p50=0.050, p99=0.061, n=20, samples=[0.05] * 20, unit="s"),
                rate=Figure(p50=20.0, p99=18.0, n=20, samples=[20.0] * 20, unit="tok/s"),
            ),
            findings={"error": 0, "warning": 2},
            output_ids=list(range(self.batch * 100)),
        )
