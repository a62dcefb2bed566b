"""Floats rounded to another dtype, written apart from the converter's own rounding so that one judges the other."""

from __future__ import annotations

from hfbench.models.dtypes import BITS
from hfbench.models.values.decode import Array, load_numpy

BITS_OF = {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}


def rounded(data: bytearray, have: str, want: str) -> Array:
    """The bits of elements of one dtype rounded to another, to nearest and even. ValueError for other pairs."""
    np = load_numpy()
    bits = np.frombuffer(data, BITS_OF[BITS[have]])
    if have == want:
        return bits
    wide = as_numbers(bits, have)
    with np.errstate(over="ignore", invalid="ignore"):
        if want == "F32":
            return wide.astype("<f4").view("<u4")
        if want == "F16":
            return wide.astype("<f2").view("<u2")
    if want == "BF16":
        return _nearest_bf16(wide)
    raise ValueError(f"{have} is not rounded to {want}")


def as_numbers(bits: Array, dtype: str) -> Array:
    """float64 of the elements' values. ValueError for other dtypes than floats of 16, 32 and 64 bits."""
    np = load_numpy()
    with np.errstate(invalid="ignore"):  # NaN that signals
        if dtype == "BF16":
            return (bits.astype("<u4") << 16).view("<f4").astype("<f8")
        if dtype in ("F16", "F32", "F64"):
            return bits.view({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype]).astype("<f8")
        return np.asarray(bits, "<f8")


def _nearest_bf16(values: Array) -> Array:
    """The nearer of the two bfloat16 around each value, measured; the even one of two as near."""
    np = load_numpy()
    below = (values.astype("<f4").view("<u4") >> 16).astype("<u2")  # towards zero, as its low half is cut off
    above = below + np.uint16(1)
    with np.errstate(invalid="ignore"):
        near, far = (np.abs(as_numbers(each, "BF16") - values) for each in (below, above))
    top = (below & 0x7FFF) == 0x7F7F  # the largest finite one: the next would be 2**128
    far = np.where(top, np.abs(2.0**128 - np.abs(values)), far)
    up = (far < near) | ((far == near) & (below & 1 == 1))
    special = ~np.isfinite(values)
    found = np.where(up & ~special, above, below)
    return np.where(np.isnan(values), np.uint16(0x7FC0) | (below & 0x8000), found)
