"""How the elements of each dtype are read as unsigned codes that grow with the magnitude."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

from hfbench.models.values.decode import EIGHT_BITS, eight_bit_values

FLOAT16_INF = 65520.0
"""The smallest magnitude that rounds to infinity in float16: half a step above its largest number, 65504."""

FLOAT16_ZERO = 2.0**-25
"""The largest magnitude that rounds to zero in float16: half its smallest number, and a tie goes to the even."""


@dataclass(frozen=True, slots=True)
class FloatCode:
    """A floating dtype. The code of an element is its bits without the sign, of E8M0 its bits plus one.

    Codes above `finite` stand for NaN, but `inf` for infinity where there is one.
    """

    dtype: str
    bits: str
    """numpy's name of the elements' bits as unsigned numbers."""
    finite: int
    inf: int | None = None
    overflows: int | None = None
    """The least code that float16 turns into an infinity; None where the forecast is not made."""
    vanishes: int = 0
    """The greatest code that float16 turns into zero."""

    @property
    def unsigned(self) -> bool:
        """True for exponents alone, of which none is zero."""
        return self.dtype == "F8_E8M0"

    @property
    def negative_zero_is_nan(self) -> bool:
        """True of the FNUZ formats, which know no other NaN."""
        return self.dtype.endswith("FNUZ")

    def value(self, code: int) -> float:
        """The magnitude a code stands for."""
        if self.bits == "<u1":
            return eight_bit_values(self.dtype)[code - self.unsigned]
        raw = (code << 16 if self.dtype == "BF16" else code).to_bytes(8, "little")
        kind = {"F64": "<d", "F16": "<e"}.get(self.dtype, "<f")
        return float(struct.unpack_from(kind, raw)[0])


@dataclass(frozen=True, slots=True)
class IntegerCode:
    """A dtype of whole numbers, or of truth values."""

    dtype: str
    bits: str


Code = FloatCode | IntegerCode

INTEGERS = {f"{sign.upper()}{8 * size}": f"<{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)} | {"BOOL": "<u1"}


@lru_cache(maxsize=32)
def code_of(dtype: str) -> Code | None:
    """The codes of a dtype; None for packed ones, whose values are not measured."""
    if dtype in INTEGERS:
        return IntegerCode(dtype, INTEGERS[dtype])
    if dtype == "F8_E8M0":
        return FloatCode(dtype, "<u1", finite=255)
    if dtype in EIGHT_BITS:
        finite, inf = {"F8_E4M3": (0x7E, None), "F8_E5M2": (0x7B, 0x7C)}.get(dtype, (0x7F, None))
        return FloatCode(dtype, "<u1", finite, inf)
    if dtype == "F16":
        return FloatCode(dtype, "<u2", finite=0x7BFF, inf=0x7C00)
    if dtype == "C64":
        return FloatCode(dtype, "<u4", finite=0x7F7FFFFF, inf=0x7F800000)
    wide = {"BF16": ("<u2", 0x7F80), "F32": ("<u4", 0x7F800000), "F64": ("<u8", 0x7FF << 52)}
    if dtype not in wide:
        return None
    bits, inf = wide[dtype]
    return FloatCode(dtype, bits, inf - 1, inf, _at_least(dtype, FLOAT16_INF), _at_least(dtype, FLOAT16_ZERO))


def _at_least(dtype: str, magnitude: float) -> int:
    """The least code of this magnitude or more."""
    if dtype == "F64":
        return int.from_bytes(struct.pack("<d", magnitude), "little")
    code = int.from_bytes(struct.pack("<f", magnitude), "little")
    return -(-code >> 16) if dtype == "BF16" else code
