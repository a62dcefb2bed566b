"""Numbers with units: how they are read from people and shown to them."""

from __future__ import annotations

import math
import re

from hfbench.errors import UsageError

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

# Each unit belongs to one dimension and is so many of its base unit (s, B, 1, tok/s, B/s, FLOP/s, W, Hz, degC).
UNITS: dict[str, tuple[str, float]] = {
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "m": ("time", 60.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
    "d": ("time", 86400.0),
    "w": ("time", 604800.0),
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "KiB": ("bytes", float(KIB)),
    "MiB": ("bytes", float(MIB)),
    "GiB": ("bytes", float(GIB)),
    "TiB": ("bytes", float(TIB)),
    "%": ("ratio", 0.01),
    "x": ("ratio", 1.0),
    "tok/s": ("token rate", 1.0),
    "MB/s": ("byte rate", 1e6),
    "GB/s": ("byte rate", 1e9),
    "MiB/s": ("byte rate", float(MIB)),
    "GiB/s": ("byte rate", float(GIB)),
    "GFLOP/s": ("flop rate", 1e9),
    "TFLOP/s": ("flop rate", 1e12),
    "W": ("power", 1.0),
    "MHz": ("frequency", 1e6),
    "C": ("temperature", 1.0),
    "token": ("count", 1.0),
}

_QUANTITY = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z%]+(?:/s)?)?\s*")

_DURATION = r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)"


def parse_quantity(text: str) -> tuple[float, str | None]:
    """`"50 ms"` -> (50.0, "ms"); a bare number has unit None. UsageError names an unknown unit."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is not a number with a unit", remedy="write for example 50 ms or 1.5 GiB")
    number, unit = float(match[1]), match[2]
    if not math.isfinite(number):
        raise UsageError(f"{text!r} is too large")
    if unit is not None and unit not in UNITS:
        raise UsageError(f"unknown unit {unit!r}", remedy=f"known: {', '.join(UNITS)}")
    return number, unit


def convert(value: float, unit: str, to: str) -> float:
    """`value` of `unit` expressed in `to`; UsageError when the two measure different things."""
    if unknown := [each for each in (unit, to) if each not in UNITS]:
        raise UsageError(f"unknown unit {unknown[0]!r}", remedy=f"known: {', '.join(UNITS)}")
    (dimension, factor), (wanted, target) = UNITS[unit], UNITS[to]
    if dimension != wanted:
        raise UsageError(f"{unit} is a {dimension}, {to} is a {wanted}")
    return value * factor / target


def parse_duration(text: str | int | float) -> float:
    """Seconds in `"10m"`, `"90 s"`, `"1h30m"`, `"30d"` or a bare number of seconds; must be finite and positive."""
    spelled = str(text).strip()
    if re.fullmatch(rf"(?:{_DURATION}\s*)+", spelled):
        seconds = sum(float(number) * UNITS[unit][1] for number, unit in re.findall(_DURATION, spelled))
    else:
        seconds = float(spelled) if re.fullmatch(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", spelled) else 0.0
    if not (0 < seconds < math.inf):
        raise UsageError(f"{spelled!r} is not a duration", remedy="write for example 30s, 10m, 1h30m or 30d")
    return seconds


def show_bytes(count: float) -> str:
    """Binary units with three significant figures: `256.6 MiB`, `1.52 TiB`."""
    for unit, size in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count) >= size * 0.9995:
            return f"{three_figures(count / size)} {unit}"
    return f"{count:.0f} B"


def show_count(count: float) -> str:
    """Decimal counts as the field writes parameters: `135M`, `7.62B`, `1.04T`."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= size * 0.9995:
            return f"{three_figures(count / size)}{unit}"
    return f"{count:.0f}"


def show_seconds(seconds: float) -> str:
    """A measured time: `812 us`, `8.12 ms`, `1.35 s`; minutes and hours as `3 m 05 s`."""
    if seconds >= 59.95 or not math.isfinite(seconds):
        return show_elapsed(seconds)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size * 0.9995:
            return f"{three_figures(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def show_elapsed(seconds: float) -> str:
    """Whole units for clocks and remaining times: `40 s`, `3 m 05 s`, `2 h 10 m`."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def show_ago(seconds: float) -> str:
    """How long ago, in one unit: `2 min ago`, `3 h ago`, `5 d ago`."""
    if not math.isfinite(seconds):
        return "?"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def show_value(value: float, unit: str) -> str:
    """A measured value beside its unit; seconds and bytes choose their own scale."""
    if not math.isfinite(value):
        return f"{value} {unit}".rstrip()
    if unit == "s":
        return show_seconds(value)
    if unit == "B":
        return show_bytes(value)
    number = f"{value:,.0f}" if abs(value) >= 10_000 or value == int(value) else three_figures(value)
    return f"{number} {unit}".rstrip()


def three_figures(value: float) -> str:
    """Three significant figures without an exponent, and never a trailing `.0` on large ones."""
    magnitude = abs(value)
    return f"{value:.2f}" if magnitude < 9.995 else f"{value:.1f}" if magnitude < 99.95 else f"{value:.0f}"
