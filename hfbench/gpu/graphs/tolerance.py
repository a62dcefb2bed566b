"""How far the logits of a replay may lie from their references, by dtype."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.errors import HfbenchError


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Largest differences allowed, as shares of the reference's largest logit, and why they are what they are."""

    eager: float
    no_cache: float
    reason: str


TOLERANCES: dict[str, Tolerance] = {
    "fp32": Tolerance(
        eager=2**-17,
        no_cache=2**-15,
        reason="a rounding is 2^-24: 128 of them for sums in another order, 512 for products of other shapes in every"
        " layer (SmolLM2-135M on a CPU: 34)",
    ),
    "fp16": Tolerance(
        eager=2**-9,
        no_cache=2**-6,
        reason="a rounding is 2^-11: 4 of them for the same step, 32 for products of other shapes in every layer"
        " (SmolLM2-135M on a CPU: 10)",
    ),
    "bf16": Tolerance(
        eager=2**-6,
        no_cache=2**-3,
        reason="a rounding is 2^-8: 4 of them for the same step, 32 for products of other shapes in every layer"
        " (SmolLM2-135M on a CPU: 6)",
    ),
}


def tolerance_of(dtype: str) -> Tolerance:
    """The tolerance for a model's short dtype; HfbenchError for one whose rounding is not known here."""
    if dtype not in TOLERANCES:
        raise HfbenchError(f"there is no tolerance for {dtype}", remedy=f"run with dtype {', '.join(TOLERANCES)}")
    return TOLERANCES[dtype]
