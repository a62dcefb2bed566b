"""Latency against throughput as painted lines: every cell a point, those that no other beats marked and numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.widgets.cells import Span, clip, spans_width, width_of
from hfbench.widgets.glyphs import Glyphs
from hfbench.widgets.plot_lines import Scale, scale_of

OTHER, FRONT, DOUBT, HERE = "o", "*", "?", "@"
"""Signs of points; a later one covers an earlier one."""
STYLES = {OTHER: "muted", FRONT: "ok", DOUBT: "warn", HERE: "key"}
MEANINGS = {FRONT: "on the front", DOUBT: "there, in doubt", OTHER: "beaten", HERE: "this one"}
LEAST_ROWS, LEAST_COLUMNS = 3, 12
AROUND = 2
"""Lines of the title and of the axis."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell: its number, both metrics in their base units, whether it stands on the front, and whether anything
    speaks against its figures."""

    number: int
    latency: float
    throughput: float
    front: bool
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """What is drawn. `lacking` counts finished cells without one of the metrics."""

    latency: str
    throughput: str
    latency_unit: str
    throughput_unit: str
    points: tuple[Point, ...]
    lacking: int = 0

    @property
    def best(self) -> tuple[Point, ...]:
        """The points of the front, by growing latency."""
        return tuple(point for point in self.points if point.front)


def front_lines(front: Front, here: int | None, width: int, height: int, glyphs: Glyphs) -> list[list[Span]]:
    """A title that says what the signs mean, the points with throughput upwards, and latency below; where there is too
    little room for them, how much they need."""
    rows = height - AROUND
    if not front.points or height < 1:
        return []
    if rows < LEAST_ROWS or width < LEAST_COLUMNS:
        told = f"no room to draw, which takes {LEAST_ROWS + AROUND} lines: the table tells it"
        return [[(clip(told, width, ellipsis=glyphs.ellipsis), "muted")]]
    up = scale_of([point.throughput for point in front.points], front.throughput_unit, rows)
    across = scale_of([point.latency for point in front.points], front.latency_unit, max(2, width // 12))
    labels = [""] * rows
    labels[0], labels[-1] = up.label(up.high), up.label(up.low)
    margin = max(map(width_of, labels)) + 1
    columns = max(2, width - margin)
    cells = [[" "] * columns for _ in range(rows)]
    ranked = sorted(front.points, key=lambda point: (point.number == here, point.front))
    for point in ranked:
        x = _place(point.latency, across, columns)
        y = rows - 1 - _place(point.throughput, up, rows)
        cells[y][x] = HERE if point.number == here else _sign(point)
    lines = [_title(front, up, width, glyphs)]
    for label, row in zip(labels, cells, strict=True):
        lines.append([(label.rjust(margin - 1) + " ", "muted"), *_runs(row)])
    return [*lines, _axis(front, across, margin, columns)]


def _title(front: Front, up: Scale, width: int, glyphs: Glyphs) -> list[Span]:
    unit = f" {up.unit}" if up.unit else ""
    seen = {_sign(point) for point in front.points}
    legend: list[Span] = []
    for sign, meaning in MEANINGS.items():
        if sign != DOUBT or sign in seen:
            legend += [("   ", ""), (sign, STYLES[sign]), (f" {meaning}", "muted")]
    room = max(1, width - spans_width(legend))
    return [(clip(f"{front.throughput}{unit}", room, ellipsis=glyphs.ellipsis), "title"), *legend]


def _sign(point: Point) -> str:
    if not point.front:
        return OTHER
    return DOUBT if point.doubt else FRONT


def _axis(front: Front, across: Scale, margin: int, columns: int) -> list[Span]:
    """The lowest value, what is meant, and the highest."""
    low, high = across.label(across.low), across.label(across.high)
    name = clip(f"{front.latency} {across.unit}".rstrip(), max(1, columns - width_of(low) - width_of(high) - 2))
    middle = name.center(max(0, columns - width_of(low) - width_of(high)))
    return [(" " * margin + low, "muted"), (middle, "title"), (high, "muted")]


def _place(value: float, scale: Scale, cells: int) -> int:
    share = (value / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2)
    return min(cells - 1, max(0, round(share * (cells - 1))))


def _runs(row: Sequence[str]) -> list[Span]:
    """Spans of a row of signs."""
    return [(sign, STYLES.get(sign, "")) for sign in row]
