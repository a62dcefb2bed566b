"""One series drawn in block characters: what each cell of a plot holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.text import printable
from hfbench.units import UNITS, show_elapsed
from hfbench.widgets.cells import Span, clip, width_of

# Quadrants by bits: 1 upper left, 2 upper right, 4 lower left, 8 lower right.
QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
HALVES = " '.:"
"""ASCII by bits: 1 upper half, 2 lower half."""

_SCALES = {"s": ("s", "ms", "us", "ns"), "B": ("TiB", "GiB", "MiB", "KiB", "B")}


@dataclass(frozen=True, slots=True)
class Series:
    """Samples over time. `xs` are seconds; without them samples stand at equal distances.

    Values that are not finite leave a gap and are counted. Units `s` and `B` scale themselves.
    """

    ys: Sequence[float] = ()
    xs: Sequence[float] = ()
    unit: str = ""
    title: str = ""
    scatter: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The values at the bottom and the top of a plot, and how they are written."""

    low: float
    high: float
    factor: float = 1.0
    unit: str = ""
    digits: int = 0

    def label(self, value: float) -> str:
        """The value with as many digits as tell it from its neighbours."""
        number = value / self.factor
        if not 1e-4 <= abs(number) < 1e7 and number:
            return f"{number:.3g}"
        return f"{number:.{self.digits}f}"


def plot(series: Series, width: int, height: int, *, ascii: bool = False) -> list[list[Span]]:
    """Lines of spans: title, then the drawing with its labels, then the time axis when there is room.

    An outlier is never averaged away: each column spans its lowest and highest sample.
    """
    if width < 1 or height < 1:
        return []
    points = _finite(series)
    lost = len(series.ys) - len(points)
    heading = _heading(series, lost, width)
    body = height - (1 if heading and height > 2 else 0)
    axis = 1 if body > 3 and len(series.xs) > 1 and points else 0
    if not points:
        empty = "no samples yet" if not series.ys else f"none of {len(series.ys)} samples is a finite number"
        lines = ([heading] if heading and height > 1 else []) + [[(clip(empty, width), "muted")]]
        return lines[:height]
    rows = body - axis
    scale = scale_of([y for _, y in points], series.unit, rows)
    labels = _labels(scale, rows)
    margin = max(map(width_of, labels)) + 1
    across = width - margin
    if across < 4:
        margin, across, labels = 0, width, [""] * rows
    drawn = _draw(points, scale, across, rows, ascii=ascii, scatter=series.scatter)
    lines = [heading] if heading and height > 2 else []
    for label, cells in zip(labels, drawn, strict=True):
        lines.append([(label.rjust(margin - 1) + " " if margin else "", "muted"), (cells, "accent")])
    if axis:
        lines.append(_axis(points, margin, across))
    return lines


def scale_of(values: Sequence[float], unit: str, rows: int) -> Scale:
    """From the lowest to the highest of finite values, with digits that tell `rows` steps apart."""
    low, high = min(values), max(values)
    if high == low:
        margin = abs(high) * 0.05 or 1.0
        low, high = low - margin, high + margin
    factor, shown = 1.0, unit
    for name in _SCALES.get(unit, ()):
        factor, shown = UNITS[name][1], name
        if max(abs(low), abs(high)) >= factor:
            break
    # Halve first: the difference of two large values of opposite sign is not finite.
    step = (high / factor / 2 - low / factor / 2) / max(1, rows - 1) * 2
    digits = max(0, min(6, 1 - math.floor(math.log10(step)))) if 0 < step < math.inf else 0
    return Scale(low, high, factor, printable(shown), digits)


def _finite(series: Series) -> list[tuple[float, float]]:
    xs: Sequence[float] = series.xs if len(series.xs) == len(series.ys) else range(len(series.ys))
    return [(x, y) for x, y in zip(xs, series.ys, strict=True) if math.isfinite(x) and math.isfinite(y)]


def _heading(series: Series, lost: int, width: int) -> list[Span]:
    spans: list[Span] = [(clip(printable(series.title), width), "title")] if series.title else []
    if lost and lost < len(series.ys):
        note = f"{'  ' if spans else ''}{lost} of {len(series.ys)} samples not finite"
        if width_of(note) + sum(width_of(text) for text, _ in spans) <= width:
            spans.append((note, "warn"))
    return spans


def _labels(scale: Scale, rows: int) -> list[str]:
    """Highest, middle and lowest value; the unit stands with the highest."""
    labels = [""] * rows
    if rows >= 5:
        labels[rows // 2] = scale.label(scale.high - (scale.high / 2 - scale.low / 2) * 2 * (rows // 2) / (rows - 1))
    if rows >= 2:
        labels[-1] = scale.label(scale.low)
    labels[0] = f"{scale.label(scale.high)} {scale.unit}".rstrip()
    return labels


def _draw(
    points: Sequence[tuple[float, float]], scale: Scale, across: int, rows: int, *, ascii: bool, scatter: bool
) -> list[str]:
    fine = across if ascii else across * 2
    spans = _columns(points, fine)
    levels = rows * 2
    cells = [[0] * across for _ in range(rows)]
    previous: tuple[int, int] | None = None
    for x, span in enumerate(spans):
        if span is None:
            continue
        bottom, top = (_level(value, scale, levels) for value in span)
        if scatter:
            marked = {bottom, top}
        else:
            first, last = bottom, top
            if previous is not None:  # join neighbours without filling what lies between them twice
                first = min(first, previous[1] + 1)
                last = max(last, previous[0] - 1)
            marked = set(range(first, last + 1))
            previous = bottom, top
        for level in marked:
            row, half = divmod(levels - 1 - level, 2)
            bit = (1 << half) if ascii else (1 << (half * 2 + x % 2))
            cells[row][x if ascii else x // 2] |= bit
    signs = HALVES if ascii else QUADRANTS
    return ["".join(signs[bits] for bits in row) for row in cells]


def _columns(points: Sequence[tuple[float, float]], fine: int) -> list[tuple[float, float] | None]:
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    spans: list[tuple[float, float] | None] = [None] * fine
    reach = right - left
    for x, y in points:
        at = min(fine - 1, int((x - left) / reach * (fine - 1) + 0.5)) if reach > 0 else 0
        span = spans[at]
        spans[at] = (y, y) if span is None else (min(span[0], y), max(span[1], y))
    return spans


def _level(value: float, scale: Scale, levels: int) -> int:
    share = (value / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2)
    return min(levels - 1, max(0, round(share * (levels - 1))))


def _axis(points: Sequence[tuple[float, float]], margin: int, across: int) -> list[Span]:
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    begin, end = "0 s", show_elapsed(right - left)
    if len(begin) + len(end) + 2 > across:
        begin = ""
    if len(end) > across:
        end = ""
    return [(" " * margin + begin + end.rjust(across - len(begin)), "muted")]
