"""Takes in the values of a tensor block by block: a few passes of integer arithmetic over bits that stay in the cache.

No element becomes a float: without its sign, a float's bits order as its magnitude does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hfbench.models.values.codes import Code, FloatCode, IntegerCode
from hfbench.models.values.decode import Array, load_numpy


@dataclass(slots=True)
class Tally:
    """Figures of some values of one tensor. `most` and `least` are codes of floats, or whole numbers themselves."""

    count: int = 0
    nan: int = 0
    inf: int = 0
    zeros: int = 0
    most: int | None = None
    """The largest finite magnitude; of whole numbers the largest number."""
    least: int | None = None
    """The smallest magnitude other than zero; of whole numbers the smallest number."""
    overflows: int = 0
    vanishes: int = 0
    first: int | None = None
    """The bits that all values share; None when they do not."""

    def add(self, other: Tally) -> None:
        """Take in what was found in other values of the tensor."""
        self.first = other.first if not self.count or self.first == other.first else None
        self.most = other.most if self.most is None else self.most if other.most is None else max(self.most, other.most)
        self.least = (
            other.least if self.least is None else self.least if other.least is None else min(self.least, other.least)
        )
        self.count += other.count
        self.nan += other.nan
        self.inf += other.inf
        self.zeros += other.zeros
        self.overflows += other.overflows
        self.vanishes += other.vanishes


class Measure:
    """Makes tallies of blocks of at most `most_bytes`; the room it works in is its own, so one thread may use it."""

    def __init__(self, most_bytes: int) -> None:
        self.np = load_numpy()
        self.raw: Array = self.np.empty(most_bytes, "u1")
        """Where the bytes of a block are put."""
        self.room: Array = self.np.empty(2 * most_bytes, "u1")  # E8M0 takes two bytes a code
        self.flags: Array = self.np.empty(most_bytes, "?")
        self.plain = True
        """Whether neither zeros nor NaN nor infinities were in the block before."""

    def tally(self, size: int, code: Code) -> Tally:
        """The tally of the first `size` bytes of `raw`, at least one element."""
        values = self.raw[:size].view(code.bits)
        found = Tally(count=values.size)
        if int(values[0]) == int(values[-1]) and not self._count(self.np.not_equal, values, values[0]):
            found.first = int(values[0])
        if isinstance(code, IntegerCode):
            found.most, found.least = int(values.max()), int(values.min())
            found.zeros = values.size - int(self.np.count_nonzero(values))
        else:
            self._floats(values, code, found)
        return found

    def _floats(self, values: Array, code: FloatCode, found: Tally) -> None:
        """Look at the extremes of both signs first: where no zero and no NaN is among them nothing is to be counted.

        Not so where the block before had to be counted, which this one will be like.
        """
        if self.plain and not code.unsigned:
            most, least = self._extremes(values)
            if most <= code.finite and least:
                found.most, found.least = most, least
                if code.overflows is not None and (most >= code.overflows or least <= code.vanishes):
                    codes = self._codes(values, code)
                    found.overflows = self._count(self.np.greater_equal, codes, code.overflows)
                    found.vanishes = self._count(self.np.less_equal, codes, code.vanishes)
                return
        self._count_all(values, code, found)
        self.plain = not (found.zeros or found.nan or found.inf)

    def _extremes(self, values: Array) -> tuple[int, int]:
        """The largest and the smallest code of either sign: as signed numbers the negative ones come first."""
        signed, half = values.view(values.dtype.str.replace("u", "i")), 2 ** (8 * values.itemsize - 1)
        most = max(int(signed.max()), int(values.max()) - half)
        return most, min(int(values.min()), int(signed.min()) + half)

    def _count_all(self, values: Array, code: FloatCode, found: Tally) -> None:
        np, codes = self.np, self._codes(values, code)
        most = int(codes.max())
        if most > code.finite:
            found.nan = self._count(np.greater, codes, code.finite)
            if code.inf is not None:
                found.inf = self._count(np.equal, codes, code.inf)
                found.nan -= found.inf
            codes[np.greater(codes, code.finite, out=self.flags[: codes.size])] = 0
            most = int(codes.max())
        found.zeros = codes.size - int(np.count_nonzero(codes)) - found.nan - found.inf
        if code.negative_zero_is_nan:
            found.nan = self._count(np.equal, values, 0x80)
            found.zeros -= found.nan
        if not most:
            found.most = 0 if found.zeros else None
            return
        found.most = most
        if code.overflows is not None and most >= code.overflows:
            found.overflows = self._count(np.greater_equal, codes, code.overflows)
        np.subtract(codes, codes.dtype.type(1), out=codes)  # zero goes round to the top and is out of the way
        found.least = int(codes.min()) + 1
        if found.least <= code.vanishes:
            found.vanishes = self._count(np.less, codes, code.vanishes)

    def _codes(self, values: Array, code: FloatCode) -> Array:
        np = self.np
        if code.unsigned:
            return np.add(values, 1, out=self.room.view("<u2")[: values.size], dtype="<u2")
        mask = values.dtype.type(2 ** (8 * values.itemsize - 1) - 1)
        return np.bitwise_and(values, mask, out=self.room.view(code.bits)[: values.size])

    def _count(self, test: Any, values: Array, than: Any) -> int:
        """How many values pass a comparison with a number."""
        return int(self.np.count_nonzero(test(values, values.dtype.type(than), out=self.flags[: values.size])))
