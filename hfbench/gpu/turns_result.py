"""What two settings measured in turns came to: a row each, and their samples round by round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hfbench.gpu.generate_result import Verified
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Summary
from hfbench.gpu.timing.verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class TurnMetrics:
    """Everything measured of one side, a sample a round: seconds for times, tokens a second for rates."""

    ttft: Summary
    tpot: Summary
    e2e: Summary
    throughput: Summary
    prefill_rate: Summary


@dataclass(frozen=True, kw_only=True)
class TurnRow:
    """One side, `A` or `B`: what it ran as, and its samples in the order of the rounds."""

    name: str
    model: str
    device: str
    dtype: str
    mode: str
    attention: str
    batch: int
    prompt_tokens: int
    new_tokens: int
    threads: int
    metrics: TurnMetrics
    verified: Verified | None = None
    params: dict[str, Any] = field(default_factory=dict)
    """All its settings as they were asked for."""


@dataclass(frozen=True, kw_only=True)
class TakenTurns:
    """All rounds of one measurement. `first` says who began each round, a letter a round; `ratio` is of times per
    token, B's as a share of A's."""

    rows: tuple[TurnRow, TurnRow]
    first: str
    ratio: Summary
    rounds: int
    measured_seconds: float
    stop_reason: str
    verdicts: list[Verdict]
    machine: Company
    gpu: GpuUse | None
    notes: list[str]
