"""The part of a report that is about one result: its metrics, samples, verdicts and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hfbench.compare.metrics import Metric, metrics_of, number
from hfbench.compare.subject import Measured
from hfbench.jobs.doubt import samples_for, verdicts_of
from hfbench.reports.document import Block, Cell, Code, Facts, Line, Points, SamplesPlot, Section, Table, Text, Tone
from hfbench.reports.drawable import drawn_or_told
from hfbench.text import printable
from hfbench.units import show_seconds, show_value

COLUMNS = ("metric", "p50", "95 % of the median", "p90", "p99", "min", "max", "n")
GOOD = ("stable",)
PLOTTED = ("tpot", "ttft", "ratio")
"""Metrics whose samples are plotted where a result has them; else the first."""


def single_sections(measured: Measured, told: Callable[[Measured], Sequence[str]]) -> list[Section]:
    """Results, verdicts and settings."""
    if measured.result is None:
        why = f"There is no result: {measured.reason or measured.state}."
        return [Section(title="Results", blocks=(Text(text=printable(why), tone="bad"),)), _settings(measured)]
    metrics = metrics_of(measured.result)
    if not metrics:
        lines = "\n".join(map(printable, told(measured)))
        return [Section(title="Results", blocks=(Code(text=lines),)), _settings(measured)]
    blocks: list[Block] = [metrics_table(metrics), *map(drawn_or_told, _plots(metrics))]
    return [
        Section(title="Results", blocks=tuple(blocks)),
        Section(title="Can it be believed", blocks=tuple(_verdicts(measured.result))),
        _settings(measured),
    ]


def metrics_table(metrics: Mapping[str, Metric]) -> Table:
    """A row a metric with its percentiles, the interval of its median and how many samples there are."""
    rows = tuple(
        (
            Cell(printable(name)),
            *(Cell(text) for text in (_shown(metric, "p50"), _interval(metric))),
            *(Cell(_shown(metric, each)) for each in ("p90", "p99", "min", "max")),
            Cell(f"{metric.count:,}"),
        )
        for name, metric in metrics.items()
    )
    return Table(columns=COLUMNS, rows=rows, numeric=frozenset(range(1, len(COLUMNS))))


def _plots(metrics: Mapping[str, Metric]) -> list[SamplesPlot]:
    named = [metrics[name] for name in PLOTTED if name in metrics] or list(metrics.values())[:1]
    return [
        SamplesPlot(
            title=printable(f"{each.name}, sample by sample"),
            unit=each.unit,
            lines=(Line(printable(each.name), each.values),),
        )
        for each in named
        if len(each.values) > 1
    ]


def _verdicts(result: Mapping[str, Any]) -> list[Block]:
    """What the measurement says of itself."""
    blocks: list[Block] = []
    if verdicts := verdicts_of(result):
        rows = tuple(
            (
                Cell(printable(str(each.get("word", ""))), _tone(str(each.get("word", "")))),
                Cell(printable(str(each.get("detail", "")))),
                Cell(printable(str(each.get("next", "")))),
            )
            for each in verdicts
        )
        blocks.append(Table(columns=("verdict", "what was seen", "what to do"), rows=rows))
    if sentences := _sentences(result):
        blocks.append(Points(texts=tuple(sentences)))
    return blocks


def _sentences(result: Mapping[str, Any]) -> list[str]:
    """How it was run, and its notes."""
    told = []
    if (seconds := number(result.get("measured_seconds"))) is not None:
        stopped = result.get("stop_reason")
        told.append(f"Measured for {show_seconds(seconds)}" + (f"; stopped: {stopped}." if stopped else "."))
    notes = result.get("notes")
    told += [f"{str(each)[:1].upper()}{str(each)[1:]}." for each in notes] if isinstance(notes, list) else []
    return [printable(each) for each in told]


def _settings(measured: Measured) -> Section:
    """The fields of the request, and what `auto` became."""
    rows = [(name, _value(value)) for name, value in measured.params.items() if value not in (None, "", [])]
    for name in ("device", "device_name", "dtype", "threads", "folder"):
        became = (measured.result or {}).get(name)
        if became is not None and became != measured.params.get(name):
            rows.append((f"{name} as it was", _value(became)))
    return Section(title="Settings", blocks=(Facts(rows=tuple((printable(n), v) for n, v in rows)),) if rows else ())


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return printable(str(value).lower() if isinstance(value, bool) else str(value))


def _shown(metric: Metric, name: str) -> str:
    value = metric.statistic(name)
    if metric.count and metric.count < samples_for(name):
        return f"n={metric.count}"
    return "-" if value is None else show_value(value, metric.unit)


def _interval(metric: Metric) -> str:
    low, high = metric.statistic("ci_low"), metric.statistic("ci_high")
    if low is None or high is None:
        return "too few samples"
    return f"{show_value(low, metric.unit)} .. {show_value(high, metric.unit)}"


def _tone(word: str) -> Tone:
    return "good" if word in GOOD else "open"
