"""What the cells of a sweep come to together: one metric over two axes, the best cell, and the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hfbench.errors import UsageError
from hfbench.jobs.doubt import samples_for
from hfbench.sweeps.metrics import metric_names
from hfbench.sweeps.model import Axis, Better, CellView, Figure, Grid, Plain, SweepSnapshot
from hfbench.text import did_you_mean


def best_cell(snapshot: SweepSnapshot, metric: str) -> CellView | None:
    """The cell with the best value of a metric; None where no cell has it or nothing tells which value is better."""
    having = [cell for cell in snapshot.cells if metric in cell.metrics]
    sense = next((cell.metrics[metric].better for cell in having), "")
    if not sense:
        return None
    return (min if sense == "lower" else max)(having, key=lambda cell: cell.metrics[metric].value)


def undecided(snapshot: SweepSnapshot, metric: str) -> bool:
    """Whether the samples do not tell which cell has the best median: the best one or a rival is in doubt, or their
    intervals are not known or reach each other. Numbers that come without samples are taken as they are."""
    best, (stem, _, part) = best_cell(snapshot, metric), metric.rpartition(".")
    if best is None or part != "p50" or f"{stem}.n" not in best.metrics:
        return False
    rivals = [cell for cell in snapshot.cells if metric in cell.metrics and cell is not best]
    doubtful = any(cell.metrics[metric].doubt for cell in (best, *rivals))
    return bool(rivals) and (
        doubtful or any(may_be_equal(_interval(best, stem), _interval(rival, stem)) for rival in rivals)
    )


def may_be_equal(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    """Whether two medians with these intervals may be the same; one whose interval is not known may be any."""
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])


def grid(snapshot: SweepSnapshot, metric: str, x: str, y: str) -> Grid:
    """A metric with the values of the axis `x` as columns and those of `y` as rows; an empty `y` makes one row.

    UsageError for a metric or an axis that the sweep does not have.
    """
    known_metric(snapshot, metric)
    across, down = axis_of(snapshot, x), axis_of(snapshot, y) if y else Axis("", (None,))
    places: dict[tuple[int, int], CellView] = {}
    merged, figure = 0, Figure(0.0)
    for cell in snapshot.cells:
        if metric not in cell.metrics:
            continue
        figure = cell.metrics[metric]
        place = index(down, cell.values.get(y)) if y else 0, index(across, cell.values.get(x))
        if other := places.get(place):
            merged += 1
            cell = _better(cell, other, metric)
        places[place] = cell
    rows = range(len(down.values))
    columns = range(len(across.values))
    values = tuple(tuple(_value(places.get((row, column)), metric) for column in columns) for row in rows)
    numbers = tuple(tuple(each.number if (each := places.get((r, c))) else None for c in columns) for r in rows)
    best = best_cell(snapshot, metric)
    return Grid(
        metric=metric,
        unit=figure.unit,
        better=figure.better,
        x=x,
        y=y,
        columns=across.values,
        rows=down.values,
        values=values,
        cells=numbers,
        best=next((place for place, cell in places.items() if best and cell.number == best.number), None),
        lacking=sum(cell.state == "finished" and metric not in cell.metrics for cell in snapshot.cells),
        merged=merged,
        undecided=undecided(snapshot, metric),
    )


def pareto(snapshot: SweepSnapshot, latency: str, throughput: str) -> tuple[int, ...]:
    """Numbers of the cells that no other cell beats in both metrics, by growing latency: each is at least as good as
    all others in one of them. A cell in doubt beats none that is believed. Cells that lack a metric are left out;
    UsageError for one that no cell has."""
    for metric in (latency, throughput):
        known_metric(snapshot, metric)
    having = [cell for cell in snapshot.cells if latency in cell.metrics and throughput in cell.metrics]
    ways = [-1.0 if _sense(having, metric) == "higher" else 1.0 for metric in (latency, throughput)]
    points = sorted(
        (ways[0] * cell.metrics[latency].value, ways[1] * cell.metrics[throughput].value, cell.number)
        for cell in having
    )
    doubtful = {cell.number for cell in having if in_doubt(cell, latency, throughput)}
    believed = set(_unbeaten([point for point in points if point[2] not in doubtful]))
    kept = believed | {number for number in _unbeaten(points) if number in doubtful}
    return tuple(number for *_, number in points if number in kept)


def in_doubt(cell: CellView, *metrics: str) -> bool:
    """Whether anything speaks against one of these figures of a cell."""
    return any(cell.metrics[metric].doubt for metric in metrics if metric in cell.metrics)


def _unbeaten(points: Sequence[tuple[float, float, int]]) -> list[int]:
    """The numbers of sorted points, less being better, that no other beats in both."""
    front: list[tuple[float, float, int]] = []
    for point in points:
        if not front or point[1] < front[-1][1] or point[:2] == front[-1][:2]:
            front.append(point)
    return [number for *_, number in front]


def axis_of(snapshot: SweepSnapshot, name: str) -> Axis:
    """The axis of that name; UsageError when there is none."""
    names = {axis.name: axis for axis in snapshot.axes}
    if name in names:
        return names[name]
    hint = did_you_mean(name, names) or f"axes: {', '.join(names) or 'none'}"
    raise UsageError(f"there is no axis {name!r}", where=snapshot.name, remedy=hint)


def known_metric(snapshot: SweepSnapshot, metric: str) -> None:
    """UsageError for a metric that no cell has."""
    names = metric_names(snapshot)
    if metric not in names:
        told = f"some are {', '.join(names[:6])}" if names else "no cell has a result yet"
        stem, _, part = metric.rpartition(".")
        if f"{stem}.n" in names and (least := samples_for(part)) > 1:
            told = f"{part} takes {least} samples, and no cell has as many of {stem}"
            raise UsageError(f"no cell has a metric {metric!r}", where=snapshot.name, remedy=told)
        raise UsageError(
            f"no cell has a metric {metric!r}", where=snapshot.name, remedy=did_you_mean(metric, names) or told
        )


def index(axis: Axis, value: Plain) -> int:
    """Where a value stands on an axis: 1 is 1.0 but not true."""
    return next(
        n for n, each in enumerate(axis.values) if each == value and isinstance(each, bool) == isinstance(value, bool)
    )


def _interval(cell: CellView, stem: str) -> tuple[float, float] | None:
    """Where the median of a summary lies; None where too few samples or a drift left that open."""
    low, high = cell.metrics.get(f"{stem}.ci_low"), cell.metrics.get(f"{stem}.ci_high")
    return (low.value, high.value) if low and high else None


def _better(one: CellView, other: CellView, metric: str) -> CellView:
    a, b = one.metrics[metric], other.metrics[metric]
    return one if (a.value < b.value) == (a.better != "higher") else other


def _value(cell: CellView | None, metric: str) -> float | None:
    return cell.metrics[metric].value if cell else None


def _sense(cells: Iterable[CellView], metric: str) -> Better:
    return next((cell.metrics[metric].better for cell in cells if cell.metrics[metric].better), "")
