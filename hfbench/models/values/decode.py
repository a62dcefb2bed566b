"""Bytes of tensors as numbers: every element type that float64 or whole numbers hold exactly."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from hfbench.errors import MissingError

Array = Any
"""A numpy array: numpy is not imported before values are to be measured."""

PLAIN = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "C64": "<f4",
    "I64": "<i8",
    "U64": "<u8",
    "I32": "<i4",
    "U32": "<u4",
    "I16": "<i2",
    "U16": "<u2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "u1",
}
"""numpy's name of a type; C64 is read as its real and imaginary parts in turn."""

WIDE = frozenset({"I64", "U64"})
"""Whole numbers that float64 would round."""

EIGHT_BITS = {"F8_E4M3": (3, 7), "F8_E5M2": (2, 15), "F8_E4M3FNUZ": (3, 8), "F8_E5M2FNUZ": (2, 16)}
"""Bits of the mantissa, bias of the exponent. Sources: OCP 8-bit floating point 1.0; FNUZ as in LLVM's APFloat."""

DECODED = frozenset({*PLAIN, *EIGHT_BITS, "F8_E8M0", "BF16"})


def load_numpy() -> Any:
    """numpy, or MissingError with the extra that installs it."""
    try:
        import numpy
    except ImportError:
        remedy = "install it with: pip install 'hfbench[torch]'"
        raise MissingError("measuring values needs numpy, which this Python lacks", remedy=remedy) from None
    return numpy


def numbers(raw: bytes | bytearray, dtype: str) -> Array:
    """The elements as float64 of the same value; I64 and U64 stay whole numbers. KeyError when not in DECODED."""
    np = load_numpy()
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype("f8")
    if dtype in WIDE:
        return np.frombuffer(raw, PLAIN[dtype])
    if dtype in PLAIN:
        return np.frombuffer(raw, PLAIN[dtype]).astype("f8")
    return np.array(eight_bit_values(dtype))[np.frombuffer(raw, "u1")]


@lru_cache(maxsize=8)
def eight_bit_values(dtype: str) -> tuple[float, ...]:
    """What each of the 256 bytes means in an 8-bit float."""
    if dtype == "F8_E8M0":
        return (*(2.0 ** (code - 127) for code in range(255)), math.nan)
    mantissa_bits, bias = EIGHT_BITS[dtype]
    return tuple(_eight_bit(code, mantissa_bits, bias, dtype) for code in range(256))


def _eight_bit(code: int, mantissa_bits: int, bias: int, dtype: str) -> float:
    sign, rest = -1.0 if code & 0x80 else 1.0, code & 0x7F
    exponent, mantissa = rest >> mantissa_bits, rest & ((1 << mantissa_bits) - 1)
    if dtype.endswith("FNUZ"):
        if code == 0x80:
            return math.nan  # the place of minus zero; there are no infinities
    elif dtype == "F8_E4M3":
        if rest == 0x7F:
            return math.nan  # nor are there here
    elif exponent == 31:
        return sign * math.inf if mantissa == 0 else math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
