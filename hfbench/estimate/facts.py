"""The records that tell whether a model fits; light to import, for declarations and screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LONGEST = 2**24
"""Tokens beyond which no context is looked for where a model tells no limit."""
MOST_SEQUENCES = 2**16
"""Sequences beyond which no batch is looked for."""


@dataclass(frozen=True, kw_only=True)
class CacheShare:
    """What the layers of one kind keep for one sequence, on all ranks together."""

    kind: str
    layers: int
    bytes_per_token: int
    """Of one of these layers, while it still grows."""
    window: int | None
    """Tokens beyond which it does not."""
    every: int
    """Tokens that one kept entry stands for."""
    fixed_tokens: int | None
    """Tokens kept whatever the context: of an image, or of an encoder."""
    state_bytes: int
    """Of one of these layers, whatever the context."""
    total_bytes: int
    """Of all these layers at the context asked for."""


@dataclass(frozen=True, kw_only=True)
class FitDevice:
    """The GPU fitted to. `usable_bytes` is what the runtime fills; `present` counts those of this machine."""

    name: str
    memory_bytes: int
    usable_bytes: int
    needed: int
    present: int | None
    source: str
    nominal: bool
    """The memory is that of the GPU's name: its driver tells a little less."""
    note: str = ""
    """What to tell about how the GPU was chosen."""


@dataclass(frozen=True, kw_only=True)
class FitCell:
    """One context and batch of the grid: the total on the fullest GPU, and what does not fit."""

    context: int
    batch: int
    total_bytes: int
    fits: bool
    limiting: str | None


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """The verdict and everything it stands on. `terms` and `total_bytes` are of the fullest GPU.

    `kv_bytes_per_token` counts keys and values of every layer as public tables do; `cache` tells by kind of layer
    what is really kept, and `kv_bytes_of_next_token` what one more token costs. None where it is not known.
    """

    model: str
    folder: str
    source: str
    """`headers`, `architecture` or `files`: where the weights were counted."""
    parameters: int | None
    tensors: int | None
    weight_bytes: int | None
    """As the files hold them, or would; what a runtime makes of them is the term `weights`."""
    kv_bytes_per_token: int | None
    kv_bytes_of_next_token: int | None
    cache: tuple[CacheShare, ...]
    terms: Mapping[str, int]
    formulas: Mapping[str, str]
    total_bytes: int | None
    device: FitDevice | None
    fits: bool | None
    limiting: str | None
    largest_context: int | None
    """Up to `context_limit`; where that is null, memory alone decides, and 16,777,216 means so many or more."""
    largest_batch: int | None
    """65,536 means so many or more."""
    context: int
    context_limit: int | None
    """What the runtime allows by default; None where neither a file nor a class tells one."""
    batch: int
    dtype: str
    kv_dtype: str
    tp: int
    pp: int
    ep: int
    runtime: str
    allowed: Mapping[str, tuple[int, ...]]
    """Ranks by name that the shape of the model allows, up to 64."""
    grid: tuple[tuple[FitCell, ...], ...]
    """A row a context, when it was asked for and everything is known."""
    guesses: tuple[str, ...]
    warnings: tuple[str, ...]
    failed: bool
