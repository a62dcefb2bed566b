"""Sums up how far apart two streams of numbers are, in float64 and in bounded memory."""

from __future__ import annotations

import math
from typing import Any

from hfbench.models.diff.decode import WIDE, Array, load_numpy
from hfbench.models.diff.facts import ValueDiff

RTOL, ATOL = 1e-5, 1e-8

_HALF = 2.0**32


class Metrics:
    """Takes pairs of arrays of one length; `told` gives the class and the metrics of all taken so far."""

    def __init__(self, dtype_a: str, dtype_b: str) -> None:
        self.np: Any = load_numpy()
        self.wide = bool({dtype_a, dtype_b} & WIDE)
        self.same_dtype = dtype_a == dtype_b
        self.finite = self.nonfinite = 0
        self.most = self.sum_abs = self.squares = self.squares_a = self.squares_b = self.dot = 0.0
        self.all_equal, self.all_close = True, True

    def add(self, a: Array, b: Array) -> None:
        """Take in the next elements of both sides."""
        np = self.np
        with np.errstate(all="ignore"):  # overflow and NaN are told in the result
            if self.wide:
                equal, apart = self._whole(a, b)
            else:
                equal, apart = (a.view("u8") == b.view("u8")) | (np.isnan(a) & np.isnan(b)), a - b
            a, b = a.astype("f8"), b.astype("f8")
            self.all_equal = self.all_equal and bool(equal.all())
            finite = np.isfinite(a) & np.isfinite(b)
            if not finite.all():
                self.nonfinite += int((~finite & ~equal).sum())
                a, b, apart = a[finite], b[finite], apart[finite]
            self._sum(a, b, apart)

    def told(self, name: str) -> ValueDiff:
        """Class and metrics; no field is ever NaN or infinite."""
        if self.all_equal and not self.same_dtype:
            return equal_values(name)
        norm_a, norm_b, norm = math.sqrt(self.squares_a), math.sqrt(self.squares_b), math.sqrt(self.squares)
        return ValueDiff(
            name=name,
            verdict="close" if self.all_close and not self.nonfinite else "differ",
            max_abs=_known(self.most) if self.finite else None,
            mean_abs=_known(self.sum_abs / self.finite) if self.finite else None,
            relative_l2=_known(norm / norm_a) if norm_a else 0.0 if self.finite and not self.most else None,
            cosine=self._cosine(norm_a, norm_b),
            nonfinite=self.nonfinite,
        )

    def _sum(self, a: Array, b: Array, apart: Array) -> None:
        np = self.np
        distance = np.abs(apart)
        self.finite += a.size
        self.most = max(self.most, float(distance.max(initial=0.0)))
        self.sum_abs += float(distance.sum())
        self.squares += float(np.dot(apart, apart))
        self.squares_a += float(np.dot(a, a))
        self.squares_b += float(np.dot(b, b))
        self.dot += float(np.dot(a, b))
        self.all_close = self.all_close and not bool((distance > ATOL + RTOL * np.abs(a)).any())

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
        product = norm_a * norm_b
        if not product or not math.isfinite(product) or not math.isfinite(self.dot):
            return None
        return max(-1.0, min(1.0, self.dot / product))


def equal_values(name: str) -> ValueDiff:
    """The metrics of a tensor with itself."""
    return ValueDiff(name=name, verdict="equal", max_abs=0.0, mean_abs=0.0, relative_l2=0.0, cosine=1.0)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
