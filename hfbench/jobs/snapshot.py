"""What a job is right now: a frozen picture folded from its events, for every front end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hfbench.codec import encode
from hfbench.errors import error_from_parts
from hfbench.jobs.directory import KEPT_LOCK, JobDirectory, held
from hfbench.jobs.events import (
    Artifact,
    Cancelled,
    Died,
    Event,
    Failed,
    Finished,
    Log,
    Metric,
    Placed,
    Progress,
    Queued,
    Requeued,
    Running,
    Started,
    Trouble,
    Waiting,
)
from hfbench.jobs.executors.base import PLACEMENT, placement_of
from hfbench.jobs.state import State as State
from hfbench.jobs.tail import EventTail, log_tail
from hfbench.units import show_value

KEPT_SAMPLES = 5000
KEPT_LOGS = 200
QUIET = 60.0
"""Seconds without an event after which a job elsewhere, of which nothing else can be learnt, counts as gone."""


@dataclass(frozen=True, kw_only=True)
class PhaseProgress:
    """The phase a job is in; `total` is None where nobody knows how much there is to do."""

    phase: str
    done: float
    total: float | None
    unit: str
    began: float
    first: float
    at: float

    @property
    def share(self) -> float | None:
        """Part done between 0 and 1; None without a total."""
        return None if not self.total else max(0.0, min(1.0, self.done / self.total))

    def rate(self, now: float) -> float | None:
        """Units a second; None before the second report. It falls while nothing is reported."""
        elapsed = max(now, self.at) - self.began
        return (self.done - self.first) / elapsed if elapsed > 0 and self.done > self.first else None

    def left(self, now: float) -> float | None:
        """Seconds left at the mean rate up to now; None when it cannot be told, or all is done."""
        rate = self.rate(now)
        return (self.total - self.done) / rate if rate and self.total is not None and self.done < self.total else None


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one metric in the order they came; only the last ones are kept, `count` counts all."""

    unit: str
    count: int
    last: float
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class JobSnapshot:
    """One job, live or long over."""

    id: str
    action: str
    params: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    environment: str = ""
    """The name of the environment it was started in; empty for the Python that asked."""
    environment_why: str = ""
    """Why it was chosen; empty when it was asked for."""
    state: State = State.STARTING
    created: float = 0.0
    started: float | None = None
    """When the action began, after any wait for a device."""
    ended: float | None = None
    host: str = ""
    device: str = ""
    pid: int = 0
    ticks: int = 0
    waits_for: str = ""
    """What a queued job waits for: the id of another job, or what an executor says."""
    on: str = ""
    """Where it was to run, as `--on` takes it; empty for this machine."""
    place: str = ""
    """What the executor calls it, and the node: `17_0 on n1`."""
    trouble: str = ""
    """What keeps its executor, or its keeper, from knowing more; the job may go on all the same."""
    orphan: bool = False
    """True when its keeper is gone: `adopt` starts another, which learns how the job is."""
    unled: bool = False
    """True when its keeper is gone and cannot have a successor, though its worker goes on."""
    phases: tuple[PhaseProgress, ...] = ()
    series: dict[str, Series] = field(default_factory=dict)
    logs: tuple[Log, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    error: dict[str, Any] | None = None
    reason: str = ""
    result: dict[str, Any] | None = None
    tail: tuple[str, ...] = ()
    """Last lines of the worker's own output; read when the job ended badly."""

    @property
    def short_id(self) -> str:
        """What a person types to name the job."""
        return self.id.rpartition("-")[2]

    @property
    def progress(self) -> PhaseProgress | None:
        """The phase of the latest report."""
        return self.phases[-1] if self.phases else None

    @property
    def waits_elsewhere(self) -> bool:
        """True when it waits for what its executor says, and not for a device that another job holds."""
        return bool(self.on) and not self.device

    def elapsed(self, now: float | None = None) -> float:
        """Seconds the action has run, or ran."""
        begin = self.started or self.created
        return max(0.0, (self.ended or (time.time() if now is None else now)) - begin)

    def headline(self) -> str:
        """The figure a job is remembered by: its result's `headline`, else its latest metric."""
        if self.result and isinstance(self.result.get("headline"), str):
            return str(self.result["headline"])
        if not self.series:
            return ""
        name, series = list(self.series.items())[-1]
        return f"{name} {show_value(series.last, series.unit)}"

    def found(self) -> str:
        """How the job ended badly, short enough for a list: what was found, not where; empty for any other."""
        return str(self.error.get("found") or self.sentence()) if self.error else self.reason

    def sentence(self) -> str:
        """How the job ended badly, in one sentence; empty for any other."""
        if self.error:
            return str(error_from_parts(self.error))
        return self.reason


class Follower:
    """Folds a job's events into snapshots as they come; `read()` costs little when nothing is new."""

    def __init__(self, job: JobDirectory) -> None:
        self.job = job
        self._tail = EventTail(job)
        request = job.request
        params = request.get("params")
        self._snapshot = JobSnapshot(
            id=job.id,
            action=str(request.get("action", "?")),
            params=params if isinstance(params, dict) else {},
            label=str(request.get("label") or ""),
            environment=job.environment("name"),
            environment_why=job.environment("why"),
            on=str(request.get("on") or ""),
            created=job.created,
            reason="" if request else "request.json is damaged",
        )
        self._values: dict[str, list[float]] = {}

    def read(self) -> JobSnapshot:
        """The job as it is now. A job whose lock is free and whose story has no end is told as died."""
        if self._snapshot.state.over:
            return self._snapshot
        alive = self.job.alive()  # asked before reading: a worker writes its last event before it lets go
        snapshot = self.fold(self._tail.read())
        if snapshot.on:
            snapshot = _where_it_stands(self.job, snapshot, alive)
        if not alive and not snapshot.orphan and not snapshot.state.over and not snapshot.unled:
            snapshot = self._without_end(snapshot)
        if not snapshot.state.over and snapshot.state is not State.CANCELLING and self.job.read("cancel.json"):
            snapshot = replace(snapshot, state=State.CANCELLING)
        if snapshot.state is State.FINISHED:
            snapshot = replace(snapshot, result=_result(self.job))
        elif snapshot.state.over:
            snapshot = replace(snapshot, tail=tuple(log_tail(self.job)))
        self._snapshot = snapshot
        return snapshot

    def fold(self, events: Iterable[Event]) -> JobSnapshot:
        """The snapshot after these further events."""
        snapshot, touched = self._snapshot, dict[str, str]()
        phases = snapshot.phases  # only reports change it: one new snapshot for all of them
        for event in events:
            if isinstance(event, Metric):
                self._values.setdefault(event.name, []).append(event.value)
                touched[event.name] = event.unit
            elif isinstance(event, Progress):
                phases = advance(phases, event)
            elif isinstance(event, Requeued):
                self._values.clear()
                touched, phases = {}, ()
                snapshot = _begun_again(snapshot, event)
            else:
                snapshot = _after(snapshot, event)
        if phases is not snapshot.phases:
            snapshot = replace(snapshot, phases=phases)
        if touched:
            series = dict(snapshot.series)
            for name, unit in touched.items():
                values = self._values[name]
                before = series[name].count if name in series else 0
                added = len(values) - len(series[name].values) if name in series else len(values)
                del values[:-KEPT_SAMPLES]
                series[name] = Series(unit=unit, count=before + added, last=values[-1], values=tuple(values))
            snapshot = replace(snapshot, series=series)
        self._snapshot = snapshot
        return snapshot

    def _without_end(self, snapshot: JobSnapshot) -> JobSnapshot:
        """The state of a job that nobody works on and that did not say how it ended."""
        if self.job.read("result.json"):  # killed between the result and the last event: the work is whole
            ended = _mtime(self.job.path / "result.json")
            return replace(snapshot, state=State.FINISHED, ended=ended, reason="")
        if self.job.read("cancel.json"):
            return replace(snapshot, state=State.CANCELLED, ended=_mtime(self.job.events), reason="killed on request")
        when = _mtime(self.job.events) if self._tail.offset else snapshot.created
        reason = snapshot.reason or "the worker is gone and left no word"
        return replace(snapshot, state=State.DIED, ended=when, reason=reason)


def _where_it_stands(job: JobDirectory, snapshot: JobSnapshot, alive: bool) -> JobSnapshot:
    """With what its keeper knows that no event tells; a job whose keeper is gone may well go on."""
    placement = placement_of(job)
    if placement is None:
        return _without_placement(job, snapshot, alive)
    orphan = not alive and not snapshot.state.over
    trouble = "its keeper is gone; hfbench starts another" if orphan else placement.trouble
    told: dict[str, Any] = {
        "trouble": "" if snapshot.state.over else trouble,
        "place": " on ".join(filter(None, (placement.id, placement.node))),
        "orphan": orphan,
    }
    same = all(getattr(snapshot, name) == value for name, value in told.items())
    return snapshot if same else replace(snapshot, **told)


def _without_placement(job: JobDirectory, snapshot: JobSnapshot, alive: bool) -> JobSnapshot:
    """The same where executor.json cannot be read. What still writes, or holds its own lock, is not dead."""
    handed_over = snapshot.place or (job.path / PLACEMENT).exists()
    if alive or snapshot.state.over or not handed_over:
        return snapshot if not snapshot.unled else replace(snapshot, unled=False, trouble="")
    goes_on = held(job.path / KEPT_LOCK) or _mtime(job.events) > time.time() - QUIET
    by_hand = f"if {snapshot.on} still has {snapshot.place or 'it'}, end it there by hand"
    damaged = "executor.json in its folder cannot be read, so that its place cannot be asked"
    if goes_on:
        return replace(snapshot, unled=True, trouble=f"{damaged}; {by_hand}")
    return replace(snapshot, unled=False, trouble="", reason=f"{damaged}, and nothing is heard of it; {by_hand}")


def read_job(job: JobDirectory) -> JobSnapshot:
    """One look at a job."""
    return Follower(job).read()


def plain(snapshot: JobSnapshot) -> dict[str, Any]:
    """The snapshot as JSON data, without the samples of its metrics."""
    data: dict[str, Any] = encode(replace(snapshot, series={}))
    data["metrics"] = {name: {"last": s.last, "count": s.count, "unit": s.unit} for name, s in snapshot.series.items()}
    data["seconds"] = snapshot.elapsed()
    del data["series"]
    return data


def _result(job: JobDirectory) -> dict[str, Any] | None:
    result = (job.read("result.json") or {}).get("result")
    return result if isinstance(result, dict) else None


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _after(snapshot: JobSnapshot, event: Event) -> JobSnapshot:
    """The snapshot after one event that is neither a metric nor a report of progress."""
    match event:
        case Started():
            return replace(snapshot, pid=event.pid, ticks=event.ticks, host=event.host)
        case Queued():
            return replace(snapshot, state=State.QUEUED, device=event.device, waits_for=event.waits_for)
        case Waiting():
            return replace(snapshot, state=State.QUEUED, waits_for=event.reason)
        case Placed():
            return replace(snapshot, place=" on ".join(filter(None, (event.id, event.node))))
        case Trouble() if event.reason:
            return replace(snapshot, logs=(*snapshot.logs, _as_log(event))[-KEPT_LOGS:])
        case Running():
            return replace(snapshot, state=State.RUNNING, started=event.at, device=event.device, waits_for="")
        case Log():
            return replace(snapshot, logs=(*snapshot.logs, event)[-KEPT_LOGS:])
        case Artifact():
            return replace(snapshot, artifacts=(*snapshot.artifacts, event))
        case Finished():
            return replace(snapshot, state=State.FINISHED, ended=event.at)
        case Failed():
            return replace(snapshot, state=State.FAILED, ended=event.at, error=event.error)
        case Cancelled():
            return replace(snapshot, state=State.CANCELLED, ended=event.at, reason=event.reason)
        case Died():
            return replace(snapshot, state=State.DIED, ended=event.at, reason=event.reason)
        case _:
            return snapshot


def _begun_again(snapshot: JobSnapshot, event: Requeued) -> JobSnapshot:
    """The snapshot of a job of which nothing counts so far but what was said."""
    told = Log(at=event.at, text=f"begun again: {event.reason}", level="warning")
    return replace(
        snapshot,
        state=State.QUEUED,
        waits_for=event.reason,
        started=None,
        series={},
        artifacts=(),
        logs=(*snapshot.logs, told)[-KEPT_LOGS:],
    )


def _as_log(event: Trouble) -> Log:
    return Log(at=event.at, text=event.reason, level="warning")


def advance(phases: tuple[PhaseProgress, ...], event: Progress) -> tuple[PhaseProgress, ...]:
    """The phases after a report: the last one moves, or a new one begins."""
    began, first, before = event.at, event.done, phases
    if phases and phases[-1].phase == event.phase:
        began, first, before = phases[-1].began, phases[-1].first, phases[:-1]
    now = PhaseProgress(
        phase=event.phase,
        done=event.done,
        total=event.total,
        unit=event.unit,
        began=began,
        first=first,
        at=event.at,
    )
    return (*before, now)
