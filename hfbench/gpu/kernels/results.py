"""What is said of a kernel, as plain data that crosses processes: one row a configuration, or a case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

StaticVerdict = Literal["ok", "spills", "refused", "failed", "timeout", "crash"]
CheckVerdict = Literal["ok", "differs", "out-of-bounds", "error", "crash", "timeout", "skipped"]


@dataclass(frozen=True, kw_only=True)
class StaticRow:
    """One configuration on one architecture; figures are None where it was not compiled.

    `registers` and `spills` are those of `ptxas -v` by its own defaults, which anybody can repeat; `loaded_registers`
    and `loaded_spills` those of the code a GPU would load, which Triton may assemble with options of its own.
    """

    kernel: str
    config: str
    dtype: str
    arch: str
    registers: int | None = None
    """For each thread."""
    spills: int | None = None
    """Bytes a thread stores to local memory for want of registers."""
    shared_bytes: int | None = None
    shared_limit: int
    verdict: StaticVerdict
    reason: str = ""
    occupancy: float | None = None
    """Warps at work as a share of those a multiprocessor holds, at best; 0 where it is refused."""
    limited_by: str = ""
    blocks: int | None = None
    """Blocks that share a multiprocessor, at best."""
    warps: int
    stages: int
    spill_loads: int | None = None
    loaded_registers: int | None = None
    loaded_spills: int | None = None
    matrix: str = ""
    """The instruction that reaches the tensor cores."""
    seconds: float = 0.0
    """What compiling took."""
    cached: bool = False


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One case of one configuration in the interpreter. Differences are of the output that is worst."""

    kernel: str
    config: str
    dtype: str
    shape: dict[str, int] = field(default_factory=dict)
    verdict: CheckVerdict
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    worst: float | None = None
    """|difference| as a share of what the tolerance allows, where that is largest."""
    output: str = ""
    where: tuple[int, ...] = ()
    seconds: float = 0.0
