"""What is said of the time of a kernel, as plain data that crosses processes: one row a subject and way to run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hfbench.gpu.timing.samples import Summary
from hfbench.gpu.timing.verdicts import Verdict

Subject = Literal["triton", "eager", "compile", "copy", "matmul"]
TimeVerdict = Literal["ok", "differs", "inapplicable", "failed", "crash", "timeout"]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One way to run one thing: cold or warm cache, with or without a graph. Figures are None where it did not run."""

    cache: Literal["cold", "warm"]
    graph: bool
    verdict: TimeVerdict
    reason: str = ""
    calls: int = 0
    """Calls for each sample."""
    stop: str = ""
    time: Summary | None = None
    """Seconds of a call."""
    verdicts: list[Verdict] = field(default_factory=list)
    """What speaks against the samples, or `stable`."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one task came to: `timed` is empty unless the verdict is `ok`."""

    verdict: TimeVerdict
    reason: str = ""
    timed: list[Timed] = field(default_factory=list)
    bytes_moved: int = 0
    flops: int = 0
    worst: float | None = None
    """The difference from the reference as a share of what the tolerance allows."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where things are timed."""

    device: str
    """`cpu` or `cuda:N`."""
    name: str
    capability: str
    """The full compute capability, such as `9.0`; `cpu` where there is none."""
    torch: str
    triton: str
    flush_bytes: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class TimeRow:
    """One subject in one way: its time, and by the declaration's models bytes and operations a second."""

    kernel: str
    subject: Subject
    config: str
    """Empty for all but `triton`."""
    dtype: str
    shape: dict[str, int]
    cache: Literal["cold", "warm", ""]
    graph: bool
    verdict: TimeVerdict
    reason: str = ""
    time: Summary | None = None
    bandwidth: float | None = None
    """Bytes a second: bytes_moved / median."""
    rate: float | None = None
    """Operations a second: flops / median."""
    of_copy: float | None = None
    """Bandwidth as a share of the copy measured in the same run."""
    of_matmul: float | None = None
    """Rate as a share of the matmul measured in the same run."""
    calls: int = 0
    stop: str = ""
    verdicts: list[Verdict] = field(default_factory=list)
