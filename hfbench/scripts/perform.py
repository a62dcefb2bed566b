"""Runs one step: an inline action in this process, any other as a job that is followed to its end."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from hfbench.actions.asking import ask
from hfbench.actions.results import exit_of, result_data
from hfbench.errors import HfbenchError, MissingError, UnforeseenError, error_from_parts, foreseen
from hfbench.exits import Exit
from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Artifact, Event, Log, Metric
from hfbench.jobs.follow import snapshots
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.run import Run
from hfbench.jobs.snapshot import JobSnapshot, State, read_job
from hfbench.paths import jobs_root
from hfbench.scripts.interrupt import Stop, Stopped, TimeIsOver
from hfbench.scripts.plan import PlannedStep
from hfbench.units import show_elapsed


class Status(StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    REFUSED = "refused"
    """It failed as the script expects it to."""

    @property
    def past(self) -> str:
        """The status as a verb."""
        return {"ok": "went well", "timeout": "took too long", "skipped": "was skipped", "refused": "was refused"}.get(
            self, "failed"
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one step came to. `error` has the parts of an HfbenchError, `metrics` the last value each metric had."""

    status: Status
    seconds: float
    result: dict[str, Any] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    job: str | None = None
    interrupted: bool = False

    @property
    def missing(self) -> bool:
        """True when this machine lacks something the step needs."""
        return self.error is not None and self.error.get("exit") == Exit.ENVIRONMENT

    def skipped(self) -> Outcome:
        """The same for a run that leaves out what this machine cannot do."""
        return replace(self, status=Status.SKIPPED)

    @property
    def refusal(self) -> bool:
        """True when the action itself said no: it neither crashed nor lacked anything, and nobody stopped it."""
        word = str((self.error or {}).get("error"))
        own = word != UnforeseenError.__name__ and not word.startswith("Job")
        return self.status is Status.FAILED and own and not self.missing and not self.interrupted

    def refused(self) -> Outcome:
        """The same for a script that expects this failure."""
        return replace(self, status=Status.REFUSED)

    def sentence(self) -> str:
        """Why the step did not go well; empty when it did."""
        return str(error_from_parts(self.error)) if self.error else ""


def unheeded(told: object) -> None:
    """Nobody wants to know."""


def perform(
    step: PlannedStep,
    *,
    stop: Stop,
    ended: Callable[[], bool],
    label: str = "",
    started: Callable[[str | None], object],
    say: Callable[[str], object],
    seen: Callable[[JobSnapshot], object] = unheeded,
    heard: Callable[[Event], object] = unheeded,
) -> Outcome:
    """Run a step to its end, or until `stop` or `ended()` asks to stop; a job it started is over when this returns.

    `started` is called once with the id of the job, or None; `say` gets sentences worth showing meanwhile, `seen` how
    far the job is, several times a second, and `heard` what an action in this process tells.
    """
    began = time.monotonic()
    if step.spec.inline:
        started(None)
        return perform_inline(step, stop, say, heard)
    try:
        job = launch(jobs_root(), job_request(step, label))
    except HfbenchError as error:
        started(None)
        return not_launched(error, time.monotonic() - began)
    return _followed(job, ended, started, say, seen, began)


def job_request(step: PlannedStep, label: str) -> JobRequest:
    """What the job of a step is asked; UsageError or MissingError where no environment can run it."""
    return ask(step.spec, step.request, runs_in=step.runs_in, on=step.on, timeout=step.timeout, label=label)


def not_launched(error: HfbenchError, seconds: float) -> Outcome:
    """What a step came to whose job could not be started."""
    return Outcome(status=Status.FAILED, seconds=seconds, error=error.parts())


def perform_inline(
    step: PlannedStep, stop: Stop, say: Callable[[str], object], heard: Callable[[Event], object] = unheeded
) -> Outcome:
    """Perform an action in this process. What it prints goes to stderr: stdout holds the results of the script."""
    began = time.monotonic()
    events: list[Event] = []
    result, error, status = None, None, Status.FAILED

    def emit(event: Event) -> None:
        events.append(event)
        heard(event)

    try:
        step.spec.require()
        with contextlib.redirect_stdout(sys.stderr), stop.raising(step.timeout):
            result = result_data(step.request.perform(Run(emit)))
        status = _status_of(result)
    except Stopped:
        error = HfbenchError("stopped on request")
    except TimeIsOver:
        status = Status.TIMEOUT
        error = HfbenchError(f"ran longer than {show_elapsed(step.timeout or 0)} and was stopped", where=step.spec.name)
    except HfbenchError as raised:
        error = raised
    except Exception as raised:
        command = f"hfbench {step.spec.name.replace('.', ' ')} --detach"
        error = foreseen(raised, traceback=f"{command} runs it as a job, whose log keeps the traceback")
    for event in events:
        if isinstance(event, Log) and event.level != "info":
            say(event.text)
    return Outcome(
        status=status,
        seconds=time.monotonic() - began,
        result=result,
        metrics={each.name: {"last": each.value, "unit": each.unit} for each in events if isinstance(each, Metric)},
        artifacts=[_artifact(each) for each in events if isinstance(each, Artifact)],
        error=error.parts() if error else _verdict_of(result),
        interrupted=stop.asked(),
    )


def _followed(
    job: JobDirectory,
    ended: Callable[[], bool],
    started: Callable[[str | None], object],
    say: Callable[[str], object],
    seen: Callable[[JobSnapshot], object],
    began: float,
) -> Outcome:
    snapshot: JobSnapshot | None = None
    told = set[str]()

    def wait(seconds: float) -> None:
        if snapshot is not None:
            seen(snapshot)
        time.sleep(seconds)

    try:
        started(job.id)
        for snapshot in snapshots(job, stop=ended, sleep=wait):
            for obstacle in _obstacles(job, snapshot):
                if obstacle not in told:
                    told.add(obstacle)
                    say(obstacle)
    finally:
        if snapshot is None or not snapshot.state.over:
            snapshot = _stopped(job, say)
    return outcome_of(job, snapshot, seconds=time.monotonic() - began, interrupted=ended())


def outcome_of(job: JobDirectory, snapshot: JobSnapshot, *, seconds: float, interrupted: bool = False) -> Outcome:
    """What a step came to whose job is over."""
    return Outcome(
        status=_status(snapshot),
        seconds=seconds,
        result=snapshot.result,
        metrics={name: {"last": s.last, "unit": s.unit} for name, s in snapshot.series.items()},
        artifacts=[_artifact(each, str(job.path)) for each in snapshot.artifacts],
        error=_error_of(snapshot),
        job=job.id,
        interrupted=interrupted,
    )


def _obstacles(job: JobDirectory, snapshot: JobSnapshot) -> Iterator[str]:
    """What a queued job waits for, be it another that holds its device, and what keeps one from being heard of."""
    if snapshot.trouble and not snapshot.state.over:
        yield f"{job.short_id}: {snapshot.trouble}"
    if snapshot.state is not State.QUEUED:
        return
    if snapshot.waits_elsewhere:
        yield f"{job.short_id} is queued on {snapshot.on}: {snapshot.waits_for}"
    else:
        yield f"{job.short_id} waits for {snapshot.waits_for or 'another job'}, which holds {snapshot.device}"


def _stopped(job: JobDirectory, say: Callable[[str], object]) -> JobSnapshot:
    """Cancel the job and wait until it is over."""
    try:
        return cancel(job)
    except HfbenchError as error:
        say(f"{job.id} could not be stopped: {error}")
        return read_job(job)


def _status(snapshot: JobSnapshot) -> Status:
    if snapshot.state is State.FINISHED:
        return _status_of(snapshot.result)
    return Status.TIMEOUT if (snapshot.error or {}).get("error") == "TookTooLong" else Status.FAILED


def _error_of(snapshot: JobSnapshot) -> dict[str, Any] | None:
    """The error of a job that did not finish; for one that died, with the last lines it printed."""
    if snapshot.state is State.FINISHED:
        return _verdict_of(snapshot.result)
    if snapshot.error:
        return snapshot.error
    ended = "died" if snapshot.state is State.DIED else f"was {snapshot.state}"
    error = HfbenchError(f"the job {ended}: {snapshot.reason or 'no reason given'}", where=snapshot.id)
    return {**error.parts(), "error": f"Job{str(snapshot.state).capitalize()}", "log": list(snapshot.tail[-10:])}


def _status_of(result: dict[str, Any] | None) -> Status:
    """A result that lacks something of this machine went no better than one that found the thing wrong."""
    lacks = exit_of(result or {}) == Exit.ENVIRONMENT
    return Status.FAILED if lacks or (result or {}).get("failed") else Status.OK


def _verdict_of(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """The error of an action that did its work and found the thing itself to be wrong, or this machine to lack it."""
    if _status_of(result) is Status.OK:
        return None
    kind = MissingError if exit_of(result or {}) == Exit.ENVIRONMENT else HfbenchError
    return kind(str((result or {}).get("headline") or "the result says that it failed")).parts()


def _artifact(event: Artifact, folder: str = "") -> dict[str, Any]:
    path = f"{folder}/{event.path}" if folder and not event.path.startswith("/") else event.path
    return {"path": path, "bytes": event.bytes, "what": event.what}
