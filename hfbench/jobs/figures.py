"""The numbers within a result, each with its path and the unit that stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

UNITLESS = {"n", "count", "outliers", "drift"}
"""Fields of a summary that are not in its unit."""

SUFFIXES = {"seconds": "s", "bytes": "B"}


def unit_of(value: Any, key: str, beside: str) -> str:
    """The unit of a value: `beside` is the `unit` of the object that holds it, else its name may tell."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or key in UNITLESS:
        return ""
    if beside:
        return beside
    return SUFFIXES.get(key.rpartition("_")[2], "")


def numbers_in(result: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """Path, value and unit of every number outside of lists; the `metrics` of a result are left out of paths, where
    no field of its own has the same name."""
    for key, value in result.items():
        if key == "metrics" and isinstance(value, Mapping):
            for name, metric in value.items():
                yield from _numbers(metric, f"metrics.{name}" if name in result else str(name), str(name), "")
        else:
            yield from _numbers(value, str(key), str(key), str(result.get("unit") or ""))


def _numbers(value: Any, path: str, key: str, beside: str) -> Iterator[tuple[str, float, str]]:
    if isinstance(value, Mapping):
        unit = str(value.get("unit") or beside)
        for name, inner in value.items():
            yield from _numbers(inner, f"{path}.{name}", str(name), unit)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value, unit_of(value, key, beside)
