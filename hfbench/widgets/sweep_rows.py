"""Sweeps and their cells as rows of tables, and what is known of one as lines; no widget and no reading here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from hfbench.jobs.doubt import SIGN
from hfbench.sweeps.grid import undecided
from hfbench.sweeps.model import (
    CellState,
    CellView,
    Figure,
    SweepRow,
    SweepSnapshot,
    SweepState,
    counted_cells,
    state_word,
    value_text,
)
from hfbench.text import printable
from hfbench.units import show_ago, show_elapsed, show_seconds, show_value
from hfbench.widgets.cells import Span, clip, spans_width, width_of
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.fit_lines import Knob, knob_lines
from hfbench.widgets.front_lines import Front
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import MARK, Record

SWEEP_SIGNS: dict[SweepState, State] = {
    "finished": "ok",
    "running": "warn",
    "stopped": "unknown",
    "interrupted": "error",
}
CELL_SIGNS: dict[CellState, State] = {
    "finished": "ok",
    "running": "warn",
    "failed": "error",
    "queued": "muted",
    "skipped": "unknown",
}

RESUMES = "s runs them"
"""How cells that were not run are, where keys are at hand."""

GAP = 2
LEAST_BAR, WIDEST_BAR = 6, 24

SWEEP_COLUMNS = (
    Column("sweep", "Sweep", flexible=True, min=12, max=40, middle=True),
    Column("state", "State"),
    Column("cells", "Finished", align="right"),
    Column("failed", "Failed", align="right"),
    Column("skipped", "Skipped", align="right", priority=3),
    Column("on", "On", priority=2, flexible=True, min=8, max=24),
    Column("ran", "Ran", align="right", priority=1),
    Column("made", "Made", align="right"),
)


def sweep_record(row: SweepRow, marked: bool, now: float, glyphs: Glyphs) -> Record:
    """One sweep of the list."""
    state, counts = SWEEP_SIGNS[row.state], row.counts
    cells = {
        "sweep": f"{MARK} {row.name}" if marked else row.name,
        "state": f"{glyphs.sign(state)} {row.state}".strip(),
        "cells": f"{counts['finished']:,} of {row.cells:,}",
        "failed": f"{counts['failed']:,}" if counts["failed"] else "",
        "skipped": f"{counts['skipped']:,}" if counts["skipped"] else "",
        "on": ", ".join(row.on),
        "ran": show_elapsed(row.seconds),
        "made": show_ago(now - row.made),
    }
    order = {"sweep": row.name, "cells": counts["finished"], "ran": row.seconds, "made": -row.made}
    return Record(row.name, cells, {"state": state, "failed": "error" if counts["failed"] else ""}, order)


def row_lines(row: SweepRow, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """What the list knows of one sweep."""
    facts = [Fact("sweep", row.name), Fact("state", row.state, SWEEP_SIGNS[row.state])]
    facts += [Fact("", row.reason)] if row.reason else []
    facts += [Fact("cells", counted_cells(row.counts, row.state, RESUMES)), Fact("on", ", ".join(row.on))]
    return facts_lines([*facts, Fact("folder", str(row.folder), "muted")], width, glyphs)


# -- one sweep ----------------------------------------------------------------


def head_lines(
    snapshot: SweepSnapshot, best: CellView | None, leading: str, width: int, glyphs: Glyphs
) -> list[list[Span]]:
    """Its counts, how far it is and how long it will take, and the best cell."""
    told = counted_cells(snapshot.counts(), snapshot.state, RESUMES)
    lines: list[list[Span]] = [[(clip(told, width, ellipsis=glyphs.ellipsis), "title")]]
    if snapshot.state == "running":
        beside = width - spans_width(lines[0]) - GAP
        if bar := _how_far(snapshot, beside, glyphs):
            lines[0] += [(" " * GAP, ""), *bar]
        else:
            lines.append(_how_far(snapshot, width, glyphs))
    if best is not None and leading in best.metrics:
        figure = best.metrics[leading]
        value = f"{printable(leading)} {figure.text}"
        sign = " best, undecided " if undecided(snapshot, leading) else " best "
        room = max(0, width - 1 - len(sign) - width_of(value) - GAP)
        label = clip(f"cell {best.number}, {printable(best.label)}", room, ellipsis=glyphs.ellipsis)
        lines.append([("b", "key"), (sign, "muted"), (value, "ok"), (" " * GAP, ""), (label, "")])
    return lines


def _how_far(snapshot: SweepSnapshot, width: int, glyphs: Glyphs) -> list[Span]:
    """A bar, the time that is left, and from what that is reckoned; nothing where a bar has no room."""
    counts = snapshot.counts()
    over = counts["finished"] + counts["failed"] + counts["skipped"]
    left = f"{' ' * GAP}about {show_elapsed(snapshot.left_s)} left" if snapshot.left_s is not None else ""
    source = f", from {snapshot.left_from}" if left and snapshot.left_from else ""
    if width < LEAST_BAR + len(left):
        return []
    bar = glyphs.bar(over / max(1, len(snapshot.cells)), max(LEAST_BAR, min(WIDEST_BAR, width - len(left + source))))
    spans: list[Span] = [(bar, "accent"), (left, "")]
    return [*spans, (source, "muted")] if spans_width(spans) + len(source) <= width else spans


def view_lines(views: Sequence[str], now: str, knobs: Sequence[Knob], width: int, glyphs: Glyphs) -> list[list[Span]]:
    """The names of the views, the one in front in brackets, then what its keys are set to."""
    names: list[Span] = [("v", "key"), (" view ", "muted")]
    for view in views:
        names += [(f"[{view}]", "title") if view == now else (f" {view} ", "muted")]
    room = width - spans_width(names) - 3
    beside = knob_lines(knobs, room, glyphs)
    if len(beside) <= 1:
        return [[*names, ("   ", ""), *(span for line in beside for span in line)]]
    return [names, *knob_lines(knobs, width, glyphs)]


def cell_columns(snapshot: SweepSnapshot, metric: str) -> tuple[Column, ...]:
    """A column an axis; the metric where one is chosen."""
    axes = (
        Column(f"axis:{axis.name}", printable(axis.name), align="right", priority=2 if at > 3 else 0, max=24)
        for at, axis in enumerate(snapshot.axes)
    )
    chosen = (Column("metric", printable(metric), align="right"),) if metric else ()
    return (
        Column("cell", "Cell", align="right"),
        Column("state", "State", min=9),
        *axes,
        *chosen,
        Column("seconds", "Took", align="right", priority=3),
        Column("on", "On", priority=4, flexible=True, min=8, max=20),
        Column("reason", "Reason", priority=1, flexible=True, min=12, max=200),
    )


def cell_record(cell: CellView, metric: str, marked: bool, glyphs: Glyphs, sweep: SweepState = "running") -> Record:
    """One cell of the table."""
    state = CELL_SIGNS[cell.state]
    share = cell.progress if cell.state == "running" else None
    word = state_word(cell.state, sweep) if share is None else f"{share:.0%}"
    figure = cell.metrics.get(metric)
    cells = {
        "cell": f"{MARK} {cell.number}" if marked else str(cell.number),
        "state": f"{glyphs.sign(state)} {word}".strip(),
        **{f"axis:{name}": value_text(value) for name, value in cell.values.items()},
        "metric": figure.text if figure else "",
        "seconds": show_elapsed(cell.seconds) if cell.seconds else "",
        "on": cell.on,
        "reason": cell.reason,
    }
    order: dict[str, object] = {"cell": cell.number, "seconds": cell.seconds or None}
    order["metric"] = figure.value if figure else None
    order |= {f"axis:{name}": value for name, value in cell.values.items() if isinstance(value, (int, float))}
    return Record(str(cell.number), cells, {"state": state, "reason": "muted"}, order)


def cell_lines(
    cell: CellView, names: Sequence[str], marked: bool, width: int, glyphs: Glyphs, sweep: SweepState = "running"
) -> list[list[Span]]:
    """What is known of one cell: its values, how it went, and every metric; of a median in doubt, why."""
    lines = facts_lines([*_cell_facts(cell, marked, sweep)], width, glyphs)
    known = [name for name in names if name in cell.metrics]
    if known:
        facts = [Fact(name, _with_doubt(name, cell.metrics[name])) for name in known]
        lines += [[], [("metrics", "title")], *facts_lines(facts, width, glyphs)]
    return lines


def _with_doubt(name: str, figure: Figure) -> str:
    why = f" {figure.doubt}" if figure.doubt and name.endswith(".p50") else ""
    return f"{figure.text}{why}"


def _cell_facts(cell: CellView, marked: bool, sweep: SweepState) -> Iterator[Fact]:
    yield Fact(f"cell {cell.number}", (cell.label or "the only one") + ("  (marked)" if marked else ""))
    progress = f" {cell.progress:.0%}" if cell.state == "running" and cell.progress is not None else ""
    took = f", {show_seconds(cell.seconds)}" if cell.seconds else ""
    attempt = f", attempt {cell.attempt}" if cell.attempt > 1 else ""
    yield Fact("state", f"{state_word(cell.state, sweep)}{progress}{took}{attempt}", CELL_SIGNS[cell.state])
    if cell.reason:
        yield Fact("", cell.reason)
    passed, failed = cell.expectations
    if passed or failed:
        held = f"{passed} of {passed + failed} expectations hold"
        yield Fact("expected", held, "error" if failed else "ok")
    if cell.jobs:
        on = f" on {cell.on}" if cell.on else ""
        yield Fact("jobs", ", ".join(job.rpartition("-")[2] for job in cell.jobs) + on)


# -- the front ----------------------------------------------------------------


def front_columns(front: Front) -> tuple[Column, ...]:
    """Both metrics and the values of the cell."""
    return (
        Column("cell", "Cell", align="right"),
        Column("latency", printable(front.latency), align="right"),
        Column("throughput", printable(front.throughput), align="right"),
        Column("values", "Values", flexible=True, min=16, max=200),
    )


def front_records(front: Front, cells: Mapping[int, CellView], marked: Set[int]) -> list[Record]:
    """The cells of the front, by growing latency."""
    return [
        Record(
            str(point.number),
            {
                "cell": f"{MARK} {point.number}" if point.number in marked else str(point.number),
                "latency": show_value(point.latency, front.latency_unit) + (SIGN if point.doubt else ""),
                "throughput": show_value(point.throughput, front.throughput_unit) + (SIGN if point.doubt else ""),
                "values": cells[point.number].label if point.number in cells else "",
            },
            order={"cell": point.number, "latency": point.latency, "throughput": point.throughput},
        )
        for point in front.best
    ]
