"""Turns tallies into figures as tensors are completed, and keeps of very many what can be told."""

from __future__ import annotations

from hfbench.models.columns import TensorInfo
from hfbench.models.values.codes import Code, FloatCode
from hfbench.models.values.facts import TensorValues, ValueScan
from hfbench.models.values.tally import Tally

LISTED = 2**25
"""Bytes of JSON, roughly, that all listed tensors take: some 70,000. A result that nobody can open tells nothing."""

ENTRY = 400
"""Bytes of JSON of one tensor beside its name."""


Place = tuple[int, int]
"""Number of the file and first byte in it."""


class Listing:
    """Takes tensors in any order; `scan` gives them in the order of their places."""

    def __init__(self) -> None:
        self.telling, self.plain = Kept(), Kept()
        self.measured = self.unmeasured = self.nan = self.inf = self.float16_inf = 0

    def measure(self, place: Place, tensor: TensorInfo, code: Code, tally: Tally) -> None:
        """Take in a tensor whose values were all seen."""
        figures = figures_of(tensor, code, tally)
        self.measured += 1
        self.nan += bool(figures.nan)
        self.inf += bool(figures.inf)
        self.float16_inf += bool(figures.float16_inf)
        (self.telling if figures.telling else self.plain).add(place, figures)

    def miss(self, place: Place, tensor: TensorInfo, why: str) -> None:
        """Take in a tensor whose values were not seen, or not all of them."""
        self.unmeasured += 1
        self.telling.add(place, _blank(tensor, why))

    def scan(self, *, bytes: int, seconds: float) -> ValueScan:
        """All that was taken in."""
        kept = self.telling.first(LISTED)
        kept += self.plain.first(LISTED - sum(map(_cost, (each for _, each in kept))))
        return ValueScan(
            tensors=tuple(each for _, each in sorted(kept, key=lambda pair: pair[0])),
            left_out=self.measured + self.unmeasured - len(kept),
            measured=self.measured,
            unmeasured=self.unmeasured,
            nan=self.nan,
            inf=self.inf,
            float16_inf=self.float16_inf,
            bytes=bytes,
            seconds=seconds,
        )


class Kept:
    """The figures of as many tensors as could be listed at most, with their places."""

    def __init__(self) -> None:
        self.cost = 0
        self.pairs: list[tuple[Place, TensorValues]] = []

    def add(self, place: Place, figures: TensorValues) -> None:
        """Keep one more, if there is room."""
        self.cost += _cost(figures)
        if self.cost <= LISTED:
            self.pairs.append((place, figures))

    def first(self, room: int) -> list[tuple[Place, TensorValues]]:
        """As many as fit into some bytes of JSON."""
        found = []
        for place, figures in self.pairs:
            room -= _cost(figures)
            if room < 0:
                break
            found.append((place, figures))
        return found


def figures_of(tensor: TensorInfo, code: Code, tally: Tally) -> TensorValues:
    """A whole tensor's tally in its own units."""
    return TensorValues(
        name=tensor.name,
        file=tensor.shard,
        dtype=tensor.dtype,
        shape=tensor.shape,
        elements=tensor.elements,
        nan=tally.nan,
        inf=tally.inf,
        zeros=tally.zeros,
        zero_fraction=tally.zeros / tally.count if tally.count else None,
        absmax=_largest(code, tally),
        absmin=code.value(tally.least) if isinstance(code, FloatCode) and tally.least is not None else None,
        constant=tally.first is not None if tally.count > 1 else None,
        float16_inf=tally.overflows if isinstance(code, FloatCode) and code.overflows is not None else None,
        float16_zero=tally.vanishes if isinstance(code, FloatCode) and code.overflows is not None else None,
    )


def _largest(code: Code, tally: Tally) -> float | None:
    if tally.most is None:
        return None
    if isinstance(code, FloatCode):
        return code.value(tally.most)
    return float(max(tally.most, -(tally.least or 0)))


def _blank(tensor: TensorInfo, why: str) -> TensorValues:
    return TensorValues(
        name=tensor.name,
        file=tensor.shard,
        dtype=tensor.dtype,
        shape=tensor.shape,
        elements=tensor.elements,
        note=why,
    )


def _cost(figures: TensorValues) -> int:
    return ENTRY + len(figures.name)
