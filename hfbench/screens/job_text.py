"""What the Job screen says of a snapshot: plain lines and series, made in the follower's thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hfbench.actions.registry import look_up
from hfbench.actions.render import result_lines
from hfbench.jobs.snapshot import JobSnapshot, Series, State
from hfbench.line_width import USUAL
from hfbench.screens.job_gpu import OF_CARD, GpuFacts, gpu_facts
from hfbench.text import printable
from hfbench.units import show_elapsed, show_value
from hfbench.widgets.plot_lines import Series as PlotSeries
from hfbench.widgets.progress_text import Phase

PLOTTED = ("tpot", "itl", "ttft", "e2e")
"""Metrics worth a plot, the most telling first; any other job plots its first."""


@dataclass(frozen=True)
class JobText:
    """The parts of the page."""

    heading: str
    phases: tuple[Phase, ...]
    metrics: tuple[str, ...]
    plot: PlotSeries | None
    trouble: str
    result: tuple[str, ...]
    log: tuple[str, ...]
    gpu: GpuFacts = field(default_factory=GpuFacts)


def job_text(snapshot: JobSnapshot) -> JobText:
    """Everything the page shows of a snapshot."""
    return JobText(
        heading=heading(snapshot),
        phases=phases(snapshot),
        metrics=tuple(
            metric_line(name, series) for name, series in snapshot.series.items() if not name.startswith(OF_CARD)
        ),
        plot=plot_of(snapshot),
        trouble=snapshot.sentence() if snapshot.state in (State.FAILED, State.DIED, State.CANCELLED) else "",
        result=_result(snapshot),
        log=tuple(printable(entry.text) for entry in snapshot.logs) + tuple(f"| {printable(t)}" for t in snapshot.tail),
        gpu=gpu_facts(snapshot),
    )


def heading(snapshot: JobSnapshot) -> str:
    """The parameters that say most: those that differ from their defaults."""
    spec = look_up(snapshot.action)
    defaults = {param.name: param.plain(param.default) for param in spec.params if not param.required} if spec else {}
    told = [
        f"{name} {_brief(name, value)}"
        for name, value in snapshot.params.items()
        if value not in (None, "", []) and value != defaults.get(name)
    ]
    told += [f"in {snapshot.environment}"] if snapshot.environment else []
    told += [f"on {snapshot.on}"] if snapshot.on else []
    return printable("  ".join(told))


def status(snapshot: JobSnapshot, now: float | None = None) -> tuple[str, ...]:
    """State, running time and device for the title line."""
    if snapshot.state is State.QUEUED and snapshot.waits_elsewhere:
        return tuple(map(printable, filter(None, (f"queued: {snapshot.waits_for}", snapshot.trouble))))
    if snapshot.state is State.QUEUED:
        holder = snapshot.waits_for.rpartition("-")[2]
        return (f"queued: waits for {holder or 'the device'}", snapshot.device)
    told = (f"{snapshot.state} {show_elapsed(snapshot.elapsed(now))}", snapshot.device[:12], snapshot.trouble)
    return tuple(map(printable, filter(None, told)))


def phases(snapshot: JobSnapshot, now: float | None = None) -> tuple[Phase, ...]:
    """The phases so far: all but the last are done, and that one too once all of it is; one of nothing is skipped."""
    shown = [Phase(phase.phase, "skipped" if phase.total == 0 else "done") for phase in snapshot.phases[:-1]]
    if last := snapshot.progress:
        ended = {State.FINISHED: "done", State.FAILED: "failed", State.DIED: "failed", State.CANCELLED: "skipped"}
        now = time.time() if now is None else now
        state = ended.get(snapshot.state, "done" if last.share == 1 else "running")
        shown.append(
            Phase(last.phase, state, fraction=last.share, remaining=last.left(now), elapsed=max(0.0, now - last.began))  # type: ignore[arg-type]
        )
    return tuple(shown)


def metric_line(name: str, series: Series) -> str:
    """`tpot  p50 8.12 ms  last 8.10 ms  n 412`, from the samples kept."""
    median, last = (show_value(value, series.unit) for value in (statistics.median(series.values), series.last))
    return f"{printable(name):<12} p50 {median:>10}   last {last:>10}   n {series.count}"


def plot_of(snapshot: JobSnapshot) -> PlotSeries | None:
    """The series to plot: a latency when there is one."""
    names = [name for name in PLOTTED if name in snapshot.series]
    names = names or sorted(snapshot.series, key=lambda name: name.startswith(OF_CARD))
    if not names:
        return None
    series = snapshot.series[names[0]]
    return PlotSeries(series.values, unit=series.unit, title=names[0])


def environment_lines(data: dict[str, Any] | None) -> list[str]:
    """environment.json as lines."""
    if not data:
        return ["the job has not told its environment yet"]
    lines = []
    for key, value in data.items():
        if isinstance(value, dict):
            lines.append(key)
            lines += [f"  {name}: {_flat(item)}" for name, item in value.items()]
        else:
            lines.append(f"{key}: {_flat(value)}")
    return [printable(line) for line in lines]


def request_lines(snapshot: JobSnapshot, folder: str) -> list[str]:
    """The request as it was asked."""
    lines = [f"id: {snapshot.id}", f"folder: {folder}", f"action: {snapshot.action}"]
    if snapshot.environment:
        lines.append(": ".join(filter(None, (f"environment: {snapshot.environment}", snapshot.environment_why))))
    if snapshot.on:
        lines.append(", ".join(filter(None, (f"on: {snapshot.on}", snapshot.place))))
    lines += [f"  {name}: {_flat(value)}" for name, value in snapshot.params.items()]
    lines += [f"artifact: {each.path}  {show_value(each.bytes, 'B')}  {each.what}" for each in snapshot.artifacts]
    return [printable(line) for line in lines]


def _result(snapshot: JobSnapshot) -> tuple[str, ...]:
    spec = look_up(snapshot.action)
    if snapshot.result is None or spec is None:
        return ()
    return tuple(result_lines(spec, snapshot.result, width=USUAL))


def _brief(name: str, value: object) -> str:
    text = _flat(value)
    if name in ("mode", "modes"):
        return ", ".join(_short_mode(each) for each in text.split(", "))
    return text.rstrip("/").rpartition("/")[2] if name in ("model", "out", "engine") else text


def _short_mode(mode: str) -> str:
    """`engine:/long/path/name` is `engine:name`."""
    kind, colon, path = mode.partition(":")
    return f"{kind}{colon}{path.rstrip('/').rpartition('/')[2]}"


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_flat, value))
    return str(value)
