"""What is seen of a sweep from where the user stands: a map of one metric, the front of two, the best cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hfbench.sweeps.grid import best_cell, in_doubt, pareto, undecided
from hfbench.sweeps.metrics import metric_names
from hfbench.sweeps.model import Axis, CellView, Figure, Plain, SweepSnapshot, SweepState, state_word, value_text
from hfbench.text import printable
from hfbench.units import three_figures
from hfbench.widgets.front_lines import Front, Point
from hfbench.widgets.glyphs import State
from hfbench.widgets.heat_lines import HeatCell, HeatMap
from hfbench.widgets.plot_lines import scale_of
from hfbench.widgets.sweep_rows import CELL_SIGNS

STATE = "state"
"""What stands for the states of the cells where a metric is chosen."""


@dataclass(frozen=True)
class Look:
    """Where the user stands. Empty names are filled in from the sweep; `fixed` are the values of the other axes."""

    metric: str = STATE
    x: str = ""
    y: str = ""
    fixed: Mapping[str, Plain] = field(default_factory=dict)
    latency: str = ""
    throughput: str = ""


@dataclass(frozen=True)
class Sight:
    """What there is to see: `look` with every name filled in, the metrics there are, and what they come to."""

    look: Look
    metrics: tuple[str, ...]
    map: HeatMap
    front: Front | None
    why_no_front: str
    leading: str
    """The metric by which the best cell is told."""
    best: CellView | None


def sight_of(snapshot: SweepSnapshot, look: Look) -> Sight:
    """What is seen of a sweep; a name the sweep does not have is replaced by one that it has."""
    metrics = metric_names(snapshot)
    figures = _samples(snapshot)
    full = _filled(snapshot, look, metrics, figures)
    leading = full.metric if full.metric != STATE and figures[full.metric].better else _first(metrics, figures, "")
    front, why = _front(snapshot, full, figures)
    return Sight(
        look=full,
        metrics=metrics,
        map=_map(snapshot, full, figures.get(full.metric)),
        front=front,
        why_no_front=why,
        leading=leading,
        best=best_cell(snapshot, leading) if leading else None,
    )


def combinations(snapshot: SweepSnapshot, look: Look) -> list[dict[str, Plain]]:
    """Every way to fix the axes that are neither across nor down, in the order they run."""
    others = [axis for axis in snapshot.axes if axis.name not in (look.x, look.y)]
    return [
        dict(zip((axis.name for axis in others), values, strict=True))
        for values in itertools.product(*(axis.values for axis in others))
    ]


def _samples(snapshot: SweepSnapshot) -> dict[str, Figure]:
    """A figure of each metric, which tells its unit and which way is better."""
    found: dict[str, Figure] = {}
    for cell in snapshot.cells:
        for name, figure in cell.metrics.items():
            if name not in found:
                found[name] = figure
    return found


def _filled(snapshot: SweepSnapshot, look: Look, metrics: tuple[str, ...], figures: Mapping[str, Figure]) -> Look:
    names = [axis.name for axis in snapshot.axes]
    by_length = sorted(names, key=lambda name: -len(_axis(snapshot, name).values))
    x = look.x if look.x in names else next((name for name in by_length if name != look.y), "")
    y = look.y if look.y in names and look.y != x else next((name for name in by_length if name != x), "")
    full = replace(
        look,
        x=x,
        y=y,
        metric=look.metric if look.metric in metrics else STATE,
        latency=look.latency if look.latency in metrics else _first(metrics, figures, "lower"),
        throughput=look.throughput if look.throughput in metrics else _first(metrics, figures, "higher"),
    )
    ways = combinations(snapshot, full)
    kept = {name: value for name, value in look.fixed.items() if name not in (x, y)}
    return replace(full, fixed=next((way for way in ways if way == kept), ways[0] if ways else {}))


def _first(metrics: tuple[str, ...], figures: Mapping[str, Figure], better: str) -> str:
    """The first metric that is the better the lower or the higher it is; empty `better` takes either."""
    return next((name for name in metrics if figures[name].better and better in ("", figures[name].better)), "")


def _axis(snapshot: SweepSnapshot, name: str) -> Axis:
    return next((axis for axis in snapshot.axes if axis.name == name), Axis("", (None,)))


# -- the map ------------------------------------------------------------------


def _map(snapshot: SweepSnapshot, look: Look, sample: Figure | None) -> HeatMap:
    """The cells that have the fixed values, each in its place."""
    across, down = _axis(snapshot, look.x), _axis(snapshot, look.y)
    places = {
        (_key(cell.values.get(look.y)), _key(cell.values.get(look.x))): cell
        for cell in snapshot.cells
        if all(_key(cell.values.get(name)) == _key(value) for name, value in look.fixed.items())
    }
    texts = _Texts(look.metric, sample, [each.metrics for each in places.values()], snapshot.state)
    seen = replace(snapshot, cells=tuple(places.values()))
    best = best_cell(seen, look.metric) if sample else None
    texts.undecided = best is not None and undecided(seen, look.metric)
    cells = tuple(
        tuple(texts.cell(places.get((_key(row), _key(column))), best) for column in across.values)
        for row in down.values
    )
    columns = tuple(value_text(value) if across.name else "all" for value in across.values)
    rows = tuple(value_text(value) if down.name else "" for value in down.values)
    return HeatMap(title=texts.title, x=across.name, y=down.name, columns=columns, rows=rows, cells=cells)


def _key(value: Plain) -> tuple[bool, Plain]:
    """A value for looking up: true is not 1."""
    return isinstance(value, bool), value


class _Texts:
    """How the cells of one map are written: all numbers of it in one unit."""

    def __init__(
        self, metric: str, sample: Figure | None, figures: list[Mapping[str, Figure]], sweep: SweepState
    ) -> None:
        self.metric, self.sweep = metric, sweep
        self.undecided = False
        """Whether samples may as well put another cell in front of the best one."""
        values = [each[metric].value for each in figures if metric in each and math.isfinite(each[metric].value)]
        self.scale = scale_of(values, sample.unit if sample else "", 8) if values else None
        unit = f" in {self.scale.unit}" if self.scale and self.scale.unit else ""
        sense = f", {sample.better} is better" if sample and sample.better else ""
        self.title = "what each cell is doing" if sample is None else f"{metric}{unit}{sense}"

    def cell(self, cell: CellView | None, best: CellView | None) -> HeatCell:
        """One place; a cell without the metric says what it is doing instead."""
        if cell is None:
            return HeatCell(None, "-", "muted")
        figure = cell.metrics.get(self.metric)
        if figure is None:
            text, state = _doing(cell, self.sweep)
            lacks = cell.state == "finished" and self.metric != STATE
            return HeatCell(cell.number, "~ none" if lacks else text, "unknown" if lacks else state)
        if self.scale is None or not math.isfinite(figure.value):
            return HeatCell(cell.number, str(figure.value), "warn")
        share = (figure.value - self.scale.low) / (self.scale.high - self.scale.low)
        number = three_figures(figure.value / self.scale.factor)
        stale: State = "" if cell.state == "finished" else "muted"
        first = best is not None and best.number == cell.number
        doubt = bool(figure.doubt)
        return HeatCell(cell.number, number, stale, 1 + round(7 * share), first, first and self.undecided, doubt)


def _doing(cell: CellView, sweep: SweepState) -> tuple[str, State]:
    """The state in a word with its sign, and as a share where that is known."""
    if cell.state == "running":
        return ("runs" if cell.progress is None else f"run {cell.progress:.0%}"), "warn"
    if cell.state == "finished":
        return "ok", "ok"
    return ("x failed" if cell.state == "failed" else state_word(cell.state, sweep)), CELL_SIGNS[cell.state]


# -- the front ----------------------------------------------------------------


def _front(snapshot: SweepSnapshot, look: Look, figures: Mapping[str, Figure]) -> tuple[Front | None, str]:
    """Both metrics of every cell that has them, or why there is nothing to draw."""
    if not figures:
        return None, "no cell has a result yet"
    if not look.latency or not look.throughput:
        lacking = "a latency (lower is better)" if not look.latency else "a throughput (higher is better)"
        return None, f"no metric of this sweep is {lacking}: there is nothing to weigh against each other"
    having = [cell for cell in snapshot.cells if look.latency in cell.metrics and look.throughput in cell.metrics]
    points = tuple(
        Point(
            cell.number,
            cell.metrics[look.latency].value,
            cell.metrics[look.throughput].value,
            front=False,
            doubt=in_doubt(cell, look.latency, look.throughput),
        )
        for cell in having
        if math.isfinite(cell.metrics[look.latency].value) and math.isfinite(cell.metrics[look.throughput].value)
    )
    if not points:
        return None, f"no cell has both {printable(look.latency)} and {printable(look.throughput)}"
    best = {number: place for place, number in enumerate(pareto(snapshot, look.latency, look.throughput))}
    ordered = sorted(
        (replace(point, front=point.number in best) for point in points),
        key=lambda point: best.get(point.number, len(best)),
    )
    lacking_count = sum(cell.state == "finished" for cell in snapshot.cells) - len(points)
    front = Front(
        latency=look.latency,
        throughput=look.throughput,
        latency_unit=figures[look.latency].unit,
        throughput_unit=figures[look.throughput].unit,
        points=tuple(ordered),
        lacking=max(0, lacking_count),
    )
    return front, ""
