"""The part of a report that is about many cells: a table, heat maps, bars and the front of latency and throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hfbench.compare.metrics import Metric, metrics_of
from hfbench.compare.subject import Measured, Subject
from hfbench.jobs.doubt import MEANING, SIGN, verdicts_in
from hfbench.models.problem import counted
from hfbench.reports.axes import axes_of, axis_key, axis_word
from hfbench.reports.best import Best, best_of, in_doubt
from hfbench.reports.document import BarPlot, Block, Cell, HeatPlot, ParetoPlot, Plot, Section, Table, Text, Tone
from hfbench.reports.drawable import drawn_or_told
from hfbench.text import printable
from hfbench.units import show_elapsed, show_value

CHIEF = ("tpot", "throughput", "ttft", "prefill_rate", "e2e", "ratio")
"""Metrics somebody looks at first, where there are such."""
MOST_COLUMNS = 5
MOST_BARS = 40
FAILED = ("failed", "died", "timeout", "cancelled")
UNFINISHED = ("queued", "running", "starting", "cancelling", "skipped")


def cells_sections(subject: Subject) -> list[Section]:
    """The table of all cells, then the pictures."""
    if not subject.measured:
        return [Section(title="Results", blocks=(Text(text="No cell has been run yet.", tone="open"),))]
    names = chief_metrics(subject)[:MOST_COLUMNS]
    return [
        Section(title="Results", blocks=(_counts(subject), _table(subject, names))),
        Section(title="Pictures", blocks=tuple(_plots(subject, names))),
        Section(title="Can it be believed", blocks=tuple(_believed(subject))),
    ]


def chief_metrics(subject: Subject) -> list[str]:
    """Names of metrics that any cell has, those that are looked at first in front."""
    found = dict.fromkeys(name for each in subject.measured for name in metrics_of(each.result))
    return sorted(found, key=lambda name: CHIEF.index(name) if name in CHIEF else len(CHIEF))


def words_of(subject: Subject) -> tuple[str, ...]:
    """The verdicts that any of its runs told of itself."""
    return tuple(dict.fromkeys(word for each in subject.measured for word in verdicts_in(each.result)))


def _believed(subject: Subject) -> Iterator[Block]:
    """What the measurements say against themselves: each word with the cells it was said of."""
    where: dict[str, list[str]] = {}
    judged = 0
    for each in subject.measured:
        words = verdicts_in(each.result)
        judged += bool(words)
        for word in words:
            where.setdefault(word, []).append(each.place or each.action)
    if not judged:
        return
    rows = tuple(
        (
            Cell(printable(word), "good" if word == "stable" else "open"),
            Cell(f"{len(places)} of {judged}"),
            _first(places),
        )
        for word, places in where.items()
    )
    yield Table(columns=("verdict", "steps", "which"), rows=rows, numeric=frozenset({1}))


def _first(places: Sequence[str]) -> Cell:
    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
    return Cell(printable("; ".join(places[:4])) + more)


def _counts(subject: Subject) -> Text:
    states: dict[str, int] = {}
    for each in subject.measured:
        states[each.state] = states.get(each.state, 0) + 1
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    return Text(text=printable(f"{counted(subject.cells, 'cell')}, {counted(len(subject.measured), 'step')}: {told}."))


def _table(subject: Subject, names: Sequence[str]) -> Table:
    axes = list(axes_of(subject.measured))
    steps = any(each.step for each in subject.measured)
    shown = [metrics_of(each.result) for each in subject.measured]
    words = words_of(subject)
    best = {name: best_of((metrics[name] for metrics in shown if name in metrics), words) for name in names}
    rows, doubtful = [], False
    for each, metrics in zip(subject.measured, shown, strict=True):
        row = [Cell(printable(axis_word(each, name))) for name in axes]
        row += [Cell(printable(each.step))] if steps else []
        figures = [_figure(metrics.get(name), best[name], verdicts_in(each.result)) for name in names]
        doubtful = doubtful or any(SIGN in figure.text for figure in figures)
        row += figures
        row.append(Cell("" if each.seconds is None else show_elapsed(each.seconds)))
        row.append(Cell(printable(_outcome(each, metrics)), _tone(each.state)))
        rows.append(tuple(row))
    columns = (*axes, *(("step",) if steps else ()), *(f"{name} p50" for name in names), "took", "state")
    first = len(axes) + steps
    return Table(
        columns=tuple(map(printable, columns)),
        rows=tuple(rows),
        numeric=frozenset(range(first, first + len(names) + 1)),
        caption=" ".join(filter(None, (_caption(best), f"{MEANING}." if doubtful else ""))),
    )


def _outcome(each: Measured, metrics: Mapping[str, Metric]) -> str:
    told = each.reason
    if not told and not metrics:
        told = str((each.result or {}).get("headline") or "")
    return f"{each.state}: {told}" if told and told != each.state else each.state


def _caption(best: Mapping[str, Best | None]) -> str:
    """What the marks mean."""
    if not best:
        return ""
    open_ones = any(each is not None and each.undecided for each in best.values())
    more = ", as undecided where the interval of its median reaches another's or too few samples tell none"
    return f"The best of each column is marked{more if open_ones else ''}."


def _figure(metric: Metric | None, best: Best | None, verdicts: Sequence[str]) -> Cell:
    value = metric.statistic("p50") if metric else None
    if metric is None or value is None:
        return Cell("-", "quiet")
    sign = SIGN if in_doubt(metric, verdicts) else ""
    if best is None or value != best.value:
        return Cell(show_value(value, metric.unit) + sign)
    return Cell(show_value(value, metric.unit) + sign + (" (undecided)" if best.undecided else ""), best=True)


def _tone(state: str) -> Tone:
    return "bad" if state in FAILED else "open" if state in UNFINISHED else ""


def _plots(subject: Subject, names: Sequence[str]) -> list[Block]:
    blocks: list[Plot] = []
    axes = axes_of(subject.measured)
    wide = [name for name, values in axes.items() if len(values) > 1]
    for name in names[:2]:
        if len(wide) == 2:
            blocks.append(_heat(subject.measured, name, wide[0], wide[1], axes))
        elif bars := _bars(subject.measured, name):
            blocks.append(bars)
    if pareto := _pareto(subject.measured, names):
        blocks.append(pareto)
    return [drawn_or_told(each) for each in blocks]


def _heat(measured: Sequence[Measured], name: str, y: str, x: str, axes: Mapping[str, Mapping[str, str]]) -> HeatPlot:
    words = [word for each in measured for word in verdicts_in(each.result)]
    known = {
        (axis_key(each, y), axis_key(each, x)): metric
        for each in measured
        if (metric := metrics_of(each.result).get(name)) is not None
    }
    first = next(iter(known.values()))
    return HeatPlot(
        title=printable(f"{name}, median"),
        unit=first.unit,
        x=printable(x),
        y=printable(y),
        columns=tuple(map(printable, axes[x].values())),
        rows=tuple(map(printable, axes[y].values())),
        values=tuple(
            tuple(known[row, column].statistic("p50") if (row, column) in known else None for column in axes[x])
            for row in axes[y]
        ),
        lower_is_better=first.better != "higher",
        undecided=(best := best_of(known.values(), words)) is not None and best.undecided,
    )


def _bars(measured: Sequence[Measured], name: str) -> BarPlot | None:
    known = [(each, metric) for each in measured if (metric := metrics_of(each.result).get(name)) is not None][
        :MOST_BARS
    ]
    if len(known) < 2:
        return None
    lows = tuple(metric.statistic("ci_low") for _, metric in known)
    return BarPlot(
        title=printable(f"{name}, median")
        + (" with its 95 % interval" if any(low is not None for low in lows) else ""),
        unit=known[0][1].unit,
        names=tuple(printable(each.place or each.action) for each, _ in known),
        values=tuple(metric.statistic("p50") or 0.0 for _, metric in known),
        low=lows,
        high=tuple(metric.statistic("ci_high") for _, metric in known),
    )


def _pareto(measured: Sequence[Measured], names: Sequence[str]) -> ParetoPlot | None:
    """Latency of a token, or whatever is lower the better, against throughput."""
    x = next((name for name in ("tpot", "ttft", "e2e") if name in names), "")
    if not x or "throughput" not in names:
        return None
    points = []
    for each in measured:
        metrics = metrics_of(each.result)
        latency, rate = (metrics[name].statistic("p50") if name in metrics else None for name in (x, "throughput"))
        if latency is not None and rate is not None:
            points.append((latency, rate, printable(each.place)))
    if len(points) < 3:
        return None
    front = tuple(
        place
        for place, (latency, rate, _) in enumerate(points)
        if not any(a <= latency and b >= rate and (a, b) != (latency, rate) for a, b, _ in points)
    )
    return ParetoPlot(
        title=f"{x} against throughput",
        x=x,
        x_unit="s",
        y="throughput",
        y_unit="tok/s",
        points=tuple(points),
        front=front,
    )
