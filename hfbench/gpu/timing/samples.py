"""Raw samples of one quantity, all kept, and the summary a result stores beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from hfbench.gpu.timing.formulas import Formula
from hfbench.gpu.timing.statistics import (
    LEAST_FOR_INTERVAL,
    drift,
    mean,
    median,
    median_interval,
    outliers,
    percentile,
    standard_deviation,
)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One metric of a result, in base units. Percentiles are linear between closest ranks; `std` divides by n-1;
    `ci_low..ci_high` is the 95 % order-statistic interval of the median, or `ci_reason` says why there is none."""

    p50: float
    p90: float
    p99: float
    mean: float
    std: float | None
    min: float
    max: float
    ci_low: float | None
    ci_high: float | None
    ci_reason: str
    drift: float | None
    outliers: int
    n: int
    samples: list[float]
    unit: str
    formula: str


@dataclass
class Samples:
    """The samples of one quantity in the order they were taken."""

    name: str
    formula: Formula
    values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Keep one sample; ValueError for one that cannot have been measured."""
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{self.name}: {value} is not a measurement")
        self.values.append(value)

    def extend(self, values: Iterable[float]) -> None:
        """Keep several samples."""
        for value in values:
            self.add(value)

    def relative_interval(self) -> float:
        """The farther end of the median's interval as a share of the median; infinite while there is none."""
        interval = median_interval(self.values)
        if interval is None or not (middle := median(self.values)):
            return math.inf
        return max(interval.high - middle, middle - interval.low) / middle

    def summary(self) -> Summary:
        """All statistics of the samples; ValueError when there are none."""
        interval = median_interval(self.values)
        few = f"the interval needs at least {LEAST_FOR_INTERVAL} samples, there are {len(self.values)}"
        return Summary(
            p50=median(self.values),
            p90=percentile(self.values, 90),
            p99=percentile(self.values, 99),
            mean=mean(self.values),
            std=standard_deviation(self.values),
            min=min(self.values),
            max=max(self.values),
            ci_low=interval.low if interval else None,
            ci_high=interval.high if interval else None,
            ci_reason="" if interval else few,
            drift=drift(self.values),
            outliers=outliers(self.values),
            n=len(self.values),
            samples=list(self.values),
            unit=self.formula.unit,
            formula=self.formula.id,
        )
