"""One floating dtype into another, rounded to nearest, ties to even, as bits; and what each cast would lose."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from hfbench.models.values.codes import FloatCode, code_of
from hfbench.models.values.decode import Array, load_numpy

FLOATS = {"F64": (52, 1023), "F32": (23, 127), "F16": (10, 15), "BF16": (7, 127)}
"""Bits of the fraction and bias of the exponent of each dtype that is cast."""

BITS_NAMES = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}
"""numpy's name of elements of so many bytes, as unsigned numbers."""


def castable(source: str, target: str) -> bool:
    """Whether values of one dtype are cast to the other; fp8 is not among them, as its scales lie elsewhere."""
    return source in FLOATS and target in FLOATS


def cast(values: Array, source: str, target: str) -> Array:
    """Bits of one dtype as bits of another: nearest, ties to even; NaN stays NaN, too large values become infinite."""
    if source == target:
        return values
    np = load_numpy()
    if target == "BF16":
        return _bf16(_single(values, source, sticky=True))
    if source == "BF16":
        values = _single(values, source)
        source = "F32"
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.view(kinds[source]).astype(kinds[target]).view(BITS_NAMES[int(kinds[target][-1])])


@lru_cache(maxsize=32)
def losses(source: str, target: str) -> FloatCode:
    """The codes of `source` with those that `target` would turn into infinities and zeros."""
    code = code_of(source)
    assert isinstance(code, FloatCode), f"{source} is not cast"
    fraction, bias = FLOATS[target]
    most = Fraction(2) ** bias * (2 - Fraction(1, 2**fraction))
    inf_from = most + Fraction(2) ** (bias - fraction) / 2
    zero_to = Fraction(2) ** (1 - bias - fraction) / 2
    return replace(code, overflows=_first(source, inf_from), vanishes=_first(source, zero_to + _TINY) - 1)


_TINY = Fraction(1, 2**2000)


def _first(dtype: str, magnitude: Fraction) -> int:
    """The least code of this magnitude or more; one more than that of infinity where there is none."""
    fraction, bias = FLOATS[dtype]
    unit = Fraction(1, 2 ** (bias - 1 + fraction))  # the smallest number
    exponent = 0
    while magnitude >= unit * 2 ** (fraction + 1 + exponent):
        exponent += 1
    steps = -(-magnitude // (unit * 2**exponent))
    code = int(steps) + (exponent << fraction)
    top = (2 * bias + 1) << fraction
    return min(code, top + 1) if code < top else top + 1


def _single(values: Array, source: str, *, sticky: bool = False) -> Array:
    """Bits of float32; of float64, those that are not exact are odd, so that rounding once more is right."""
    np = load_numpy()
    if source == "BF16":
        return values.astype("<u4") << 16
    if source == "F32":
        return values
    if source == "F16":
        return values.view("<f2").astype("<f4").view("<u4")
    assert sticky, "float64 becomes float32 in one step"
    wide = values.view("<f8")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        near = wide.astype("<f4")
        bits = near.view("<u4")
        exact = (near.astype("<f8") == wide) | np.isnan(wide)
        beyond = np.abs(near.astype("<f8")) > np.abs(wide)
    return np.where(exact, bits, (bits - beyond) | 1).astype("<u4")


def _bf16(bits: Array) -> Array:
    """The upper half of float32 bits, rounded."""
    np = load_numpy()
    odd = (bits >> 16) & 1
    rounded = ((bits + 0x7FFF + odd) >> 16).astype("<u2")
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    if nan.any():
        rounded[nan] = ((bits[nan] >> 16) | 0x40).astype("<u2")
    return np.ascontiguousarray(rounded)
