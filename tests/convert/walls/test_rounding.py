"""The wall's own rounding: exhaustive where it can be, and against numpy's float16."""

from __future__ import annotations

import numpy as np
import pytest

from hfbench.convert.walls.rounding import as_numbers, rounded


def test_every_bfloat16_survives_the_way_through_float32() -> None:
    codes = np.arange(1 << 16, dtype="<u2")
    wide = rounded(bytearray(codes.tobytes()), "BF16", "F32")
    back = rounded(bytearray(wide.tobytes()), "F32", "BF16")
    numbers = as_numbers(codes, "BF16")
    assert np.array_equal(back[~np.isnan(numbers)], codes[~np.isnan(numbers)])
    assert np.isnan(as_numbers(back[np.isnan(numbers)], "BF16")).all()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1.0, 0x3F80),
        (1.0 + 2**-8, 0x3F80),  # half way: the even one
        (1.0 + 3 * 2**-8, 0x3F82),  # half way again, and the even one lies above
        (1.0 + 2**-8 + 2**-20, 0x3F81),
        (-1.0 - 3 * 2**-8, 0xBF82),
        (3.4e38, 0x7F80),  # beyond the largest finite one by more than half a step: infinite
        (1e-40, 0x0001),
        (0.0, 0x0000),
        (-0.0, 0x8000),
    ],
)
def test_nearest_bfloat16(value: float, code: int) -> None:
    data = bytearray(np.array([value], "<f4").tobytes())
    assert rounded(data, "F32", "BF16")[0] == code


def test_float16_overflows_to_infinity() -> None:
    data = bytearray(np.array([65519.0, 65520.0, -70000.0], "<f4").tobytes())
    assert as_numbers(rounded(data, "F32", "F16"), "F16").tolist() == [65504.0, np.inf, -np.inf]


def test_other_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="F32 is not rounded to I32"):
        rounded(bytearray(4), "F32", "I32")
