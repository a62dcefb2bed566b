"""What the values of a checkpoint are like, as plain records; light to import, for declarations of actions."""

from __future__ import annotations

from dataclasses import dataclass

LOST = 0.01
"""Part of a tensor's values that is worth a word when float16 turns them into zero: a few do in any large model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorValues:
    """The figures of one tensor; all are None where `note` says why its values were not measured.

    Of C64 the real and the imaginary parts are counted apart.
    """

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    nan: int | None = None
    inf: int | None = None
    zeros: int | None = None
    zero_fraction: float | None = None
    """Part of the values that is zero, of either sign; None of no values."""
    absmax: float | None = None
    """The largest magnitude; NaN and infinities are left out, None when nothing is left."""
    absmin: float | None = None
    """The smallest magnitude that is not zero; None of whole numbers."""
    constant: bool | None = None
    """Whether all values are the same bits; None of fewer than two."""
    float16_inf: int | None = None
    """Finite values that a cast to float16 turns into infinities; None where float16 holds all values of the dtype
    or the dtype holds no weights."""
    float16_zero: int | None = None
    """Values that such a cast turns into zero, though they are not."""
    note: str = ""

    @property
    def lost_share(self) -> float:
        """Part of the values other than zero that float16 turns into zero."""
        filled = self.elements - (self.zeros or 0) - (self.nan or 0) - (self.inf or 0)
        return (self.float16_zero or 0) / filled if filled > 0 else 0.0

    @property
    def telling(self) -> bool:
        """True when there is something to say of the tensor."""
        return bool(self.nan or self.inf or self.float16_inf or self.lost_share >= LOST or self.constant or self.note)


@dataclass(frozen=True, kw_only=True)
class ValueScan:
    """All tensors of a checkpoint, measured once. Sizes are bytes."""

    tensors: tuple[TensorValues, ...]
    """In the order of the files; of very many, those come first that something can be said of."""
    left_out: int
    """Tensors that were measured but are not listed."""
    measured: int
    unmeasured: int
    nan: int
    """Tensors that hold NaN; so with `inf`."""
    inf: int
    float16_inf: int
    """Tensors with a value that float16 turns into an infinity."""
    bytes: int
    seconds: float
