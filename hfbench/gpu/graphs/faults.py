"""What can be wrong with a captured decode step, by name, each with its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Every fault a verification can name, in the order in which one explains the others."""

    SYNC = "sync during capture"
    REFUSED = "capture refused"
    UNINITIALISED = "uninitialised cache"
    GROWING = "growing cache"
    STALE = "stale input"
    NOT_RESET = "cache not reset after warm-up"
    BAKED = "baked branch or scalar"
    WRONG_STEP = "step differs from the forward without a cache"
    NOT_FINITE = "logits not finite"


REMEDY: dict[Fault, str] = {
    Fault.SYNC: "keep .item(), bool(tensor), nonzero and boolean masks out of the step, or read them after the replay",
    Fault.REFUSED: "run the step without capturing it and read the first error",
    Fault.UNINITIALISED: "allocate and prefill the whole cache before the warm-up; a replay would clear it each time",
    Fault.GROWING: "use a cache of fixed size that is written in place, such as StaticCache",
    Fault.STALE: "write new inputs with copy_() into the tensors that were captured, never into new ones",
    Fault.NOT_RESET: "put contents and lengths of the cache back to the end of the prompt after the warm-up",
    Fault.BAKED: "make what changes from step to step a tensor that is written in place before the replay",
    Fault.WRONG_STEP: "mend positions, mask or cache of the step: it is wrong without a graph too",
    Fault.NOT_FINITE: "look for memory that was never written, for padded rows, or for an overflow of the dtype; where"
    " a plain forward gives NaN too, for NaN in the weights (hfbench inspect --values)",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault that was seen, and the evidence for it."""

    fault: Fault
    evidence: str


@dataclass(frozen=True, kw_only=True)
class StepCheck:
    """One replayed step with fresh tokens beside its two references.

    Errors are the largest difference of a logit as a share of the reference's largest logit; None where a value was
    not finite. `position` counts the tokens before this one.
    """

    batch: int
    step: int
    position: int
    against_eager: float | None
    against_no_cache: float | None
    finite: bool
    shape_kept: bool
    inputs_in_place: bool
    cache_in_place: bool
    ok: bool


@dataclass(frozen=True, kw_only=True)
class SizeCheck:
    """One captured batch size. `findings` is everything seen, the cause first; `operations` were recorded."""

    batch: int
    verdict: str
    fault: str
    evidence: str
    operations: int
    findings: tuple[Finding, ...]
    steps: tuple[StepCheck, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every size that was captured, the largest first. `capture` says by what: a CUDA graph, or a tape on the CPU."""

    folder: str
    device: str
    device_name: str
    dtype: str
    attention: str
    capture: str
    prompt_tokens: int
    threads: int
    tolerance_eager: float
    tolerance_no_cache: float
    tolerance_reason: str
    sizes: tuple[SizeCheck, ...]
    device_reason: str = ""
    """Why `auto` took the CPU; empty for all else."""


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings, causes before what they bring about."""
    order = list(Fault)
    return tuple(sorted(findings, key=lambda found: order.index(found.fault)))
