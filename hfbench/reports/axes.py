"""The axes of what was measured cell by cell: their values in the order they came, and how these are written."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.compare.subject import Measured, value_key, value_word


def axes_of(measured: Sequence[Measured]) -> dict[str, dict[str, str]]:
    """The values of each axis as text, by the key that tells them apart, in the order they came."""
    axes: dict[str, dict[str, str]] = {}
    for each in measured:
        for name, value in each.values.items():
            axes.setdefault(name, {})[value_key(value)] = value_word(value)
    return axes


def axis_key(measured: Measured, name: str) -> str:
    """What tells a value of an axis from all others; empty where a cell has none."""
    return value_key(measured.values[name]) if name in measured.values else ""


def axis_word(measured: Measured, name: str) -> str:
    """The value of an axis as a script would write it; empty where a cell has none."""
    return value_word(measured.values[name]) if name in measured.values else ""
