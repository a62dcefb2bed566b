"""Casts round to nearest, ties to even, as torch does; what they would lose is counted before."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfbench.convert.stream.cast import cast, losses
from hfbench.models.values.codes import code_of

KINDS = {"F64": "u8", "F32": "u4", "F16": "u2", "BF16": "u2"}


def samples(dtype: str) -> Any:
    """Every number of 16 bits; of wider ones many exponents, and the neighbours of ties."""
    if KINDS[dtype] == "u2":
        return np.arange(2**16, dtype="u2")
    draw = np.random.default_rng(1)
    if dtype == "F64":
        narrow = draw.integers(0, 2**32, 4000, dtype="u8").astype("u4").view("f4")
        values = narrow[np.isfinite(narrow)].astype("f8").view("u8")
        return np.concatenate([values, values + 1, values - 1, draw.integers(0, 2**64, 4000, dtype="u8")])
    values = draw.integers(0, 2**32, 20000, dtype="u8").astype("u4")
    ties = (values & 0xFFFF0000) | 0x8000
    return np.concatenate([values, ties, ties + 1, ties - 1, np.arange(0, 2**17, 5, dtype="u4")])


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_cast_gives_the_bits_torch_gives(torch_judge: Any, tmp_path: Path, source: str, target: str) -> None:
    """But for NaN, which only has to stay one, and float64 to bfloat16, which torch rounds twice."""
    bits = samples(source)
    (tmp_path / "in").write_bytes(bits.tobytes())
    torch_judge("cast", tmp_path / "in", source, target, tmp_path / "out")
    wanted = np.fromfile(tmp_path / "out", KINDS[target])
    found = cast(bits, source, target)
    nan = is_nan(bits, source)
    assert (is_nan(found, target) == nan).all()
    differ = (found != wanted) & ~nan
    if (source, target) == ("F64", "BF16"):
        assert all(nearest(*pair) for pair in zip(bits[differ], found[differ], strict=True))
    else:
        assert not differ.any()


def test_float64_is_rounded_once_to_bfloat16() -> None:
    """1 + 2**-8 is a tie; a little more goes up, and float32 in between would make it the tie again."""
    value = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8], "f8")
    assert cast(value.view("u8"), "F64", "BF16").tolist() == [0x3F81, 0x3F80, 0x3F82]


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_losses_are_those_the_cast_makes(source: str, target: str) -> None:
    code, bits = losses(source, target), samples(source)
    bits = bits[~is_nan(bits, source)]
    magnitude = bits & ~np.array(1 << (8 * bits.itemsize - 1), bits.dtype)
    finite, filled = magnitude < np.array(code.finite + 1, bits.dtype), magnitude > 0
    found = cast(bits, source, target)
    after = found & ~np.array(1 << (8 * found.itemsize - 1), found.dtype)
    wide = code_of(target)
    infinite = after == wide.inf  # type: ignore[union-attr]
    assert ((magnitude.astype("u8") >= code.overflows) & finite == infinite & finite).all()
    assert ((magnitude.astype("u8") <= code.vanishes) & filled == (after == 0) & filled).all()


def test_float16_is_infinite_from_65520_on() -> None:
    code = losses("F32", "F16")
    assert code.value(code.overflows or 0) == 65520.0
    assert code.value(code.vanishes) == 2.0**-25


def is_nan(bits: Any, dtype: str) -> Any:
    fraction, exponent = {"F64": (52, 11), "F32": (23, 8), "F16": (10, 5), "BF16": (7, 8)}[dtype]
    top = ((1 << exponent) - 1) << fraction
    return (bits & np.array((1 << (fraction + exponent)) - 1, bits.dtype)) > np.array(top, bits.dtype)


def nearest(wide: int, code: int) -> bool:
    """Whether no bfloat16 is nearer to a float64 than this one."""

    def value(of: int) -> Fraction:
        return Fraction(struct.unpack("<f", struct.pack("<I", int(of) << 16))[0])

    exact = Fraction(struct.unpack("<d", struct.pack("<Q", int(wide)))[0])
    if code & 0x7FFF == 0x7F80:
        return abs(exact) >= Fraction(2) ** 127 * (2 - Fraction(1, 2**8))
    away = abs(value(code) - exact)
    return all(away <= abs(value(other) - exact) for other in (code - 1, code + 1) if other & 0x7FFF < 0x7F80)
