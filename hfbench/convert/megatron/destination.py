"""How a Megatron checkpoint is to lie: the ranks, the format, whose names, the dtype and the padding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hfbench.convert.megatron.parallel import Parallel

Format = Literal["torch", "torch_dist"]
Names = Literal["local", "te"]

DIVISIBLE_BY = 128
"""Megatron's default of --make-vocab-size-divisible-by."""


@dataclass(frozen=True, slots=True)
class Destination:
    """What is asked for of a checkpoint to be written; the defaults are one rank in Megatron's own terms."""

    parallel: Parallel = field(default_factory=Parallel)
    format: Format = "torch"
    names: Names = "te"
    dtype: str | None = None
    """What floats are cast to (`BF16`); None keeps what is stored."""
    divisible_by: int = DIVISIBLE_BY
    """The vocabulary is padded to a multiple of it times TP."""
