"""The unit in which the values of a plot are told: seconds as ms, bytes as GiB."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.gpu.timing.statistics import median

LADDERS: dict[str, tuple[tuple[str, float], ...]] = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)),
    "B": (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)),
}


class Scale:
    """One unit for all values of a plot, that which suits the middle one. `size` is what one of it is."""

    def __init__(self, values: Sequence[float], unit: str) -> None:
        middle = abs(median(values)) if values else 0.0
        ladder = LADDERS.get(unit, ((unit, 1.0),))
        self.unit, self.size = next((each for each in ladder if middle >= each[1]), ladder[-1])

    def __call__(self, value: float) -> float:
        """A value in the unit."""
        return value / self.size
