"""The metrics within a result: each with its samples where they were kept, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hfbench.jobs.figures import numbers_in
from hfbench.text import printable

STATISTICS = ("p50", "p90", "p99", "mean", "min", "max", "std")
"""What a summary tells of its samples."""
NAMING = ("name", "mode", "loader", "label", "setting")
"""Fields by which a row of a list is called, else its number."""
HIGHER = ("throughput", "rate", "speed", "bandwidth", "per_second", "occupancy", "flops")
LOWER_UNITS = ("s", "B", "x", "W", "J", "C")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric of one run, by its summary as the result holds it."""

    name: str
    unit: str
    better: str
    """`lower`, `higher`, or empty where nobody said."""
    summary: Mapping[str, Any]

    @cached_property
    def taken(self) -> tuple[float | None, ...]:
        """The samples in the order taken, in `unit`, None for what is no finite number: a place is a round."""
        kept = self.summary.get("samples")
        return tuple(map(number, kept)) if isinstance(kept, list) else ()

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The samples that are finite numbers; empty where only the summary was kept."""
        return tuple(each for each in self.taken if each is not None)

    @property
    def unreadable(self) -> str:
        """`3 of 100 samples of tpot are no finite numbers and are left out`; empty where all are."""
        left = len(self.taken) - len(self.values)
        return (
            f"{left} of {len(self.taken)} samples of {self.name} are no finite numbers and are left out" if left else ""
        )

    def statistic(self, name: str) -> float | None:
        """A statistic of its summary; None when that has none."""
        return number(self.summary.get(name))

    @property
    def count(self) -> int:
        """How many samples it was made of."""
        told = self.summary.get("n")
        return told if isinstance(told, int) and not isinstance(told, bool) else len(self.values)


def metrics_of(result: Mapping[str, Any] | None) -> dict[str, Metric]:
    """Every summary of samples in a result by its path, `metrics` left out of it; rows of lists go by their name."""
    return {each.name: each for each in _found(result or {}, ())}


def single_figures(result: Mapping[str, Any] | None) -> dict[str, tuple[float, str]]:
    """Numbers with a unit that stand by themselves, such as bytes and seconds: (value, unit) by path."""
    known = metrics_of(result)
    return {
        path: (value, unit)
        for path, told, unit in numbers_in(result or {})
        if unit
        and (value := number(told)) is not None
        and not any(path.startswith(f"{name}.") for name in known)
        and ".metrics." not in f".{path}"
    }


def better_of(name: str, unit: str) -> str:
    """Which way a metric is better, by its unit and, where that does not tell, its name."""
    if unit.endswith("/s") or any(word in name.lower() for word in HIGHER):
        return "higher"
    return "lower" if unit in LOWER_UNITS else ""


def number(value: object) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        told = float(value)
    except OverflowError:
        return None
    return told if math.isfinite(told) else None


def is_summary(data: object) -> bool:
    """Whether an object of a result tells of samples."""
    return isinstance(data, Mapping) and number(data.get("p50")) is not None and isinstance(data.get("unit"), str)


def _found(data: Any, path: tuple[str, ...]) -> Iterator[Metric]:
    if isinstance(data, Mapping):
        if path and is_summary(data):
            yield _metric(".".join(path), data)
            return
        for key, inner in data.items():
            yield from _found(inner, path if key == "metrics" else (*path, str(key)))
    elif isinstance(data, list):
        for place, inner in enumerate(data):
            if isinstance(inner, Mapping):
                yield from _found(inner, (*path, _row_name(inner, place)))


def _row_name(row: Mapping[str, Any], place: int) -> str:
    told = next((row[key] for key in NAMING if isinstance(row.get(key), str) and row[key]), "")
    return str(told).rstrip("/").rpartition("/")[2] or str(place)


def _metric(name: str, summary: Mapping[str, Any]) -> Metric:
    unit = printable(str(summary["unit"]))
    return Metric(name=name, unit=unit, better=better_of(name, unit), summary=summary)
