"""Sums up how far apart two streams of numbers are, in float64 and in bounded memory."""

from __future__ import annotations

import math
from typing import Any

from hfbench.models.columns import TensorInfo
from hfbench.models.diff.facts import Tolerance, ValueClass, ValueDiff
from hfbench.models.values.decode import WIDE, Array, load_numpy

_HALF = 2.0**32


class Metrics:
    """Takes pairs of arrays of one length; `told` gives the class and the metrics of all taken so far.

    `same_bits` says that equal values would have equal bytes: bytes that differ are then never told as equal.
    """

    def __init__(self, dtype_a: str, dtype_b: str, tolerance: Tolerance, *, same_bits: bool) -> None:
        self.np: Any = load_numpy()
        self.wide = bool({dtype_a, dtype_b} & WIDE)
        self.rtol, self.atol = tolerance.rtol, tolerance.atol
        self.finite = self.nonfinite = 0
        self.most = self.sum_abs = self.squares = self.squares_a = self.squares_b = 0.0
        self.all_equal, self.all_close = not same_bits, True

    def add(self, a: Array, b: Array, scale: Array | float = 1.0) -> None:
        """Take in the next elements of both sides; `scale` is what the absolute tolerance is multiplied by."""
        np = self.np
        with np.errstate(all="ignore"):  # overflow and NaN are told in the result
            if not self.wide:
                squares = self._product(a, a), self._product(b, b)
                if math.isfinite(squares[0]) and math.isfinite(squares[1]):  # the usual case: all finite, no overflow
                    self.all_equal = self.all_equal and bool(np.array_equal(a.view("u8"), b.view("u8")))
                    self._sum(a, b, a - b, scale, squares)
                    return
            self._add_any(a, b, scale)

    def _add_any(self, a: Array, b: Array, scale: Array | float) -> None:
        np = self.np
        if self.wide:
            equal, apart = self._whole(a, b)
            a, b = a.astype("f8"), b.astype("f8")
        else:
            equal, apart = (a.view("u8") == b.view("u8")) | (np.isnan(a) & np.isnan(b)), a - b
        self.all_equal = self.all_equal and bool(equal.all())
        finite = np.isfinite(a) & np.isfinite(b)
        if not finite.all():
            self.nonfinite += int((~finite & ~equal).sum())
            a, b, apart = a[finite], b[finite], apart[finite]
            scale = scale if isinstance(scale, float) else scale[finite]
        self._sum(a, b, apart, scale, (self._product(a, a), self._product(b, b)))

    def told(self, tensor: TensorInfo, note: str = "") -> ValueDiff:
        """Class and metrics; no field is ever NaN or infinite."""
        if self.all_equal:
            return equal_values(tensor, note)
        norm_a, norm_b, norm = math.sqrt(self.squares_a), math.sqrt(self.squares_b), math.sqrt(self.squares)
        return ValueDiff(
            name=tensor.name,
            dtype=tensor.dtype,
            shape=tensor.shape,
            verdict="close" if self.all_close and not self.nonfinite else "differ",
            max_abs=_known(self.most) if self.finite else None,
            mean_abs=_known(self.sum_abs / self.finite) if self.finite else None,
            relative_l2=_known(norm / norm_a) if norm_a else 0.0 if self.finite and not self.most else None,
            cosine=self._cosine(norm_a, norm_b),
            nonfinite=self.nonfinite,
            note=note,
        )

    def _sum(self, a: Array, b: Array, apart: Array, scale: Array | float, squares: tuple[float, float]) -> None:
        np = self.np
        self.finite += a.size
        self.squares_a += squares[0]
        self.squares_b += squares[1]
        self.squares += self._product(apart, apart)
        distance = np.abs(apart, out=apart)
        most = float(distance.max(initial=0.0))
        self.most = max(self.most, most)
        self.sum_abs += float(distance.sum())
        if self.all_close and most:
            size = np.maximum(np.abs(a), np.abs(b))
            self.all_close = not bool((distance > self.atol * scale + self.rtol * size).any())

    def _product(self, a: Array, b: Array) -> float:
        """The inner product in this thread: that of BLAS would wake others, which costs more than it saves."""
        return float(self.np.einsum("i,i->", a, b))

    def _whole(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Equality and distance where 64-bit whole numbers take part, by halves that float64 holds exactly."""
        (high_a, low_a), (high_b, low_b) = self._halves(a), self._halves(b)
        return (high_a == high_b) & (low_a == low_b), (high_a - high_b) * _HALF + (low_a - low_b)

    def _halves(self, values: Array) -> tuple[Array, Array]:
        if values.dtype.kind == "f":
            high = self.np.floor(values / _HALF)
            return high, values - high * _HALF
        return (values >> 32).astype("f8"), (values & 0xFFFFFFFF).astype("f8")

    def _cosine(self, norm_a: float, norm_b: float) -> float | None:
        if self.finite and not self.most and not self.nonfinite:
            return 1.0
        product, dot = norm_a * norm_b, (self.squares_a + self.squares_b - self.squares) / 2  # by the law of cosines
        if not product or not math.isfinite(product) or not math.isfinite(dot):
            return None
        return max(-1.0, min(1.0, dot / product))


def equal_values(tensor: TensorInfo, note: str = "") -> ValueDiff:
    """The metrics of a tensor with itself."""
    return ValueDiff(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        verdict="equal",
        max_abs=0.0,
        mean_abs=0.0,
        relative_l2=0.0,
        cosine=1.0,
        note=note,
    )


def not_measured(tensor: TensorInfo, note: str, *, same_dtype: bool) -> ValueDiff:
    """A tensor whose bytes differ and whose values nobody knows: in one dtype they do differ."""
    verdict: ValueClass = "differ" if same_dtype else "unknown"
    return ValueDiff(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, verdict=verdict, note=note)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
