"""A sweep as a table: a row a cell, its values, how it went and its metrics; for people, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.jobs.doubt import MEANING, SIGN
from hfbench.sweeps.grid import best_cell, in_doubt, known_metric, undecided
from hfbench.sweeps.metrics import metric_names
from hfbench.sweeps.model import CellView, Figure, SweepSnapshot, SweepState, state_word, value_text
from hfbench.text import cells, printable
from hfbench.units import show_value

USUAL = 4
"""Metrics shown unless somebody asks for others."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The cells of a sweep with some metrics; a metric that a cell lacks is None in its row. `best` has the number of
    the best cell by metric, for those that can be better; `undecided` are metrics whose samples do not tell it."""

    name: str
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[CellView, ...]
    best: dict[str, int]
    undecided: frozenset[str] = frozenset()
    state: SweepState = "finished"

    @property
    def outputs(self) -> bool:
        """Whether any cell gave something out."""
        return any(row.outputs for row in self.rows)

    @property
    def in_doubt(self) -> bool:
        """Whether a figure that is shown is."""
        return any(in_doubt(row, *self.metrics) for row in self.rows)

    @property
    def counted(self) -> tuple[str, ...]:
        """The metrics that tell how many samples those shown are made of."""
        counts = dict.fromkeys(f"{metric.rpartition('.')[0]}.n" for metric in self.metrics)
        return tuple(name for name in counts if name not in self.metrics and any(name in r.metrics for r in self.rows))

    def lacking(self) -> dict[str, int]:
        """How many finished cells lack each metric, where some do."""
        finished = [row for row in self.rows if row.state == "finished"]
        counts = {metric: sum(metric not in row.metrics for row in finished) for metric in self.metrics}
        return {metric: count for metric, count in counts.items() if count}


def table(snapshot: SweepSnapshot, metrics: Sequence[str] = ()) -> Table:
    """The table of a sweep; UsageError for a metric that no cell has."""
    for metric in metrics:
        known_metric(snapshot, metric)
    chosen = tuple(metrics) or usual_metrics(snapshot)
    best = {metric: cell.number for metric in chosen if (cell := best_cell(snapshot, metric))}
    axes = tuple(axis.name for axis in snapshot.axes)
    open_ones = frozenset(metric for metric in best if undecided(snapshot, metric))
    return Table(
        name=snapshot.name,
        axes=axes,
        metrics=chosen,
        rows=snapshot.cells,
        best=best,
        undecided=open_ones,
        state=snapshot.state,
    )


def usual_metrics(snapshot: SweepSnapshot) -> tuple[str, ...]:
    """What is shown unless somebody asks: medians where there are any, else what can be better, else the first."""
    names = metric_names(snapshot)
    sense = {name for cell in snapshot.cells for name, figure in cell.metrics.items() if figure.better}
    medians = [name for name in names if name.endswith(".p50")]
    return tuple((medians or [name for name in names if name in sense] or list(names))[:USUAL])


def lines_of_table(told: Table) -> list[str]:
    """The table for people, columns aligned; the best of a metric has a star, and `?` stands behind what is in doubt
    and behind a best that is undecided."""
    heads = ["CELL", *told.axes, "STATE", *told.metrics, *(["OUTPUTS"] if told.outputs else [])]
    texts = [heads]
    for row in told.rows:
        figures = [_shown(row.metrics.get(name), _sign(told, row, name)) for name in told.metrics]
        values = [value_text(row.values.get(axis)) for axis in told.axes]
        state = state_word(row.state, told.state)
        texts.append([str(row.number), *values, state, *figures, *([row.outputs] if told.outputs else [])])
    safe = [[printable(each) for each in line] for line in texts]
    widths = [max(map(cells, column)) for column in zip(*safe, strict=True)]
    right = {0, *range(2 + len(told.axes), 2 + len(told.axes) + len(told.metrics))}
    lines = []
    for line in safe:
        padded = [_padded(each, widths[place], right=place in right) for place, each in enumerate(line)]
        lines.append("  ".join(padded).rstrip())
    return lines


def notes_of_table(told: Table) -> list[str]:
    """Sentences on what the table lacks, and on cells that did not go well."""
    notes = [
        f"{count} of the finished cells {'lacks' if count == 1 else 'lack'} {metric}"
        for metric, count in told.lacking().items()
    ]
    notes += [
        f"best {metric}, undecided: the intervals of medians overlap, or too few samples tell none"
        for metric in told.metrics
        if metric in told.undecided
    ]
    notes += [MEANING] if told.in_doubt else []
    notes += [
        f"cell {row.number} ({row.label or 'without values'}) {row.state}: {row.reason}"
        for row in told.rows
        if row.reason and row.state in ("failed", "skipped")
    ]
    return [printable(note) for note in notes]


def csv_of_table(told: Table) -> str:
    """The table as CSV: numbers in base units, nothing where a cell lacks a metric; then of how many samples they are
    made, and the verdicts of the run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    units = {name: figure.unit for row in told.rows for name, figure in row.metrics.items()}
    named = [f"{name} [{units[name]}]" if units.get(name) else name for name in told.metrics]
    heads = ["cell", *told.axes, "state", "on", "seconds", *named, *told.counted, "verdicts", "outputs", "reason"]
    writer.writerow(heads)
    for row in told.rows:
        values = [value_text(row.values.get(axis)) for axis in told.axes]
        figures = [row.metrics[name].value if name in row.metrics else "" for name in told.metrics]
        figures += [int(row.metrics[name].value) if name in row.metrics else "" for name in told.counted]
        told_of = [" ".join(row.verdicts), row.outputs, row.reason]
        writer.writerow([row.number, *values, row.state, row.on, row.seconds, *figures, *told_of])
    return text.getvalue()


def plain_table(told: Table) -> list[dict[str, Any]]:
    """The table as JSON data, an object a cell."""
    return [
        {
            "cell": row.number,
            "values": dict(row.values),
            "state": row.state,
            "reason": row.reason,
            "on": row.on,
            "attempt": row.attempt,
            "jobs": list(row.jobs),
            "seconds": row.seconds,
            "expectations": {"passed": row.expectations[0], "failed": row.expectations[1]},
            "outputs": row.outputs or None,
            "verdicts": list(row.verdicts),
            "metrics": {name: _plain(row.metrics.get(name)) for name in told.metrics},
        }
        for row in told.rows
    ]


def _plain(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {"value": figure.value, "unit": figure.unit, "better": figure.better, "doubt": figure.doubt}


def _shown(figure: Figure | None, sign: str) -> str:
    """The number, then its signs: a star for the best, `?` once."""
    if figure is None:
        return "-"
    value = show_value(figure.value, figure.unit)
    doubted = SIGN if figure.doubt and SIGN not in sign else ""
    return f"{value}{sign}{doubted}"


def _sign(told: Table, row: CellView, metric: str) -> str:
    if told.best.get(metric) != row.number:
        return ""
    return " *?" if metric in told.undecided else " *"


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - cells(text))
    return f"{space}{text}" if right else f"{text}{space}"
