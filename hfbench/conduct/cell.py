"""One attempt of one cell: its steps one after another, each judged, told step by step to whoever drives it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from hfbench.conduct.no_room import tells_no_room
from hfbench.conduct.places import Slot
from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Requeued
from hfbench.jobs.executors.base import OutOfReach
from hfbench.jobs.launch import JobRequest, adopt
from hfbench.jobs.snapshot import Follower, JobSnapshot, State
from hfbench.jobs.tail import read_events
from hfbench.paths import jobs_root
from hfbench.scripts.expectation import Expectation, Verdict
from hfbench.scripts.interrupt import Stop
from hfbench.scripts.outcomes import WORDS, refusal_of, shown, told, verdict_on
from hfbench.scripts.perform import Outcome, Status, job_request, not_launched, outcome_of, perform_inline
from hfbench.scripts.plan import Cell, Fails, PlannedStep


class Book(Protocol):
    """Where a cell writes what happens to it."""

    def step(self, run: CellRun, step: PlannedStep, job: str | None) -> None:
        """A step begins."""

    def event(self, run: CellRun, kind: str, **fields: Any) -> None:
        """An event as a script's replay writes it."""

    def say(self, sentence: str) -> None:
        """Something worth knowing."""

    def no_room(self, where: object) -> None:
        """A disk is full, for which no cell is to blame."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How an attempt of a cell ended; `exit` is the code a script would have, `expectations` are (passed, failed)."""

    state: str
    reason: str = ""
    seconds: float = 0.0
    exit: Exit = Exit.OK
    expectations: tuple[int, int] = (0, 0)


Turn: TypeAlias = Generator[JobRequest | None, JobDirectory | HfbenchError | None, Outcome]


@dataclass
class CellRun:
    """One attempt. `adopted` are the jobs that an earlier conductor started for it, by step."""

    number: int
    cell: Cell
    attempt: int
    slot: Slot
    label: str
    stop: Stop
    book: Book
    skip_missing: bool = False
    adopted: Mapping[int, str] = field(default_factory=dict)
    job: JobDirectory | None = None
    """The job that runs now."""

    _saved: dict[str, Outcome] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _faults: list[tuple[Exit, str]] = field(default_factory=list)
    _asked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WORDS.values(), 0))

    def go(self) -> Generator[JobRequest | None, JobDirectory | HfbenchError | None, Ended]:
        """Run all steps. Yields a request where a job is to be launched, and is sent the job or why there is none;
        yields None where there is nothing to do but to wait."""
        seconds, statuses = 0.0, list[Status]()
        for planned in self.cell.steps:
            step = self.slot.settled(planned)
            outcome = yield from self._outcome(step)
            if tells_no_room(outcome.error):
                self.book.no_room((outcome.error or {}).get("where") or "")
                return Ended(state="queued", reason=outcome.sentence())
            if outcome.interrupted:
                return Ended(state="queued", reason=outcome.sentence())
            if outcome.missing and self.skip_missing:
                outcome = outcome.skipped()
            fails = refusal_of(step, outcome)
            if fails and fails.ok:
                outcome = outcome.refused()
            seconds += outcome.seconds
            statuses.append(outcome.status)
            where = {"step": step.number, "line": step.line}
            self.book.event(self, "step_finished", **where, action=step.spec.name, **shown(outcome))
            if not self._judged(step, outcome, fails) and step.on_fail == "stop":
                break
        code, fault = max(self._faults, key=lambda each: each[0]) if self._faults else (Exit.OK, "")
        skipped = all(status is Status.SKIPPED for status in statuses)
        state = "failed" if self._faults else "skipped" if skipped else "finished"
        asked = self._asked["passed"], self._asked["failed"]
        reason = "; ".join(filter(None, [fault, *self._notes]))
        return Ended(state=state, reason=reason, seconds=seconds, exit=code, expectations=asked)

    def _judged(self, step: PlannedStep, outcome: Outcome, fails: Verdict | None) -> bool:
        """Keep what went wrong with a step and ask what is expected of it; True when all is well."""
        before = len(self._faults)
        if step.save_as:
            self._saved[step.save_as] = outcome
        if outcome.status is Status.SKIPPED:
            self._notes.append(outcome.sentence())
        elif outcome.status not in (Status.OK, Status.REFUSED):
            self._faults.append((Exit.ENVIRONMENT if outcome.missing else Exit.STEP, outcome.sentence()))
        if step.fails and fails:
            self._tell(step, step.fails, fails)
        for expectation in step.expectations:
            self._tell(step, expectation, verdict_on(expectation, outcome, self._saved))
        return len(self._faults) == before

    def _tell(self, step: PlannedStep, asked: Expectation | Fails, verdict: Verdict) -> None:
        """Write what became of something expected, and keep it when it does not hold."""
        self._asked[WORDS[verdict.ok]] += 1
        where = {"step": step.number, "line": asked.line}
        self.book.event(self, "assert", **where, expr=asked.text, **told(verdict))
        if verdict.ok is False:
            why = verdict.reason or f"it is {verdict.actual} {verdict.unit}".rstrip()
            self._faults.append((Exit.FAILED, f"not as expected: {asked.text}; {why}"))

    def _outcome(self, step: PlannedStep) -> Turn:
        """What one step comes to: by a job that runs or ran already, by a new one, or in this process."""
        if step.spec.inline:
            self._begin(step, None)
            return perform_inline(step, self.stop, self.book.say)
        if (known := self.adopted.get(step.number)) and (job := JobDirectory(jobs_root() / known)).path.is_dir():
            self._begin(step, job)
            snapshot = yield from self._followed(job)
            outcome = outcome_of(job, snapshot, seconds=snapshot.elapsed())
            if snapshot.state not in (State.DIED, State.CANCELLED) and not tells_no_room(outcome.error):
                return outcome
            self._notes.append(f"job {job.short_id} was begun again: {snapshot.reason or outcome.sentence()}")
        try:
            launched = yield job_request(step, self.label)
        except HfbenchError as error:
            launched = error
        if isinstance(launched, OutOfReach):
            return replace(not_launched(launched, 0.0), interrupted=True)
        if not isinstance(launched, JobDirectory):
            if not tells_no_room(launched):
                self._begin(step, None)
            return not_launched(launched or HfbenchError("the job was not launched"), 0.0)
        self._begin(step, launched)
        snapshot = yield from self._followed(launched)
        return outcome_of(launched, snapshot, seconds=snapshot.elapsed())

    def _begin(self, step: PlannedStep, job: JobDirectory | None) -> None:
        self.book.step(self, step, job.id if job else None)
        where = {"step": step.number, "line": step.line}
        self.book.event(self, "step_started", **where, action=step.spec.name, job=job.id if job else None)

    def _followed(self, job: JobDirectory) -> Generator[None, object, JobSnapshot]:
        """Wait until a job is over; a job elsewhere whose keeper is gone gets another."""
        follower, self.job = Follower(job), job
        while not (snapshot := follower.read()).state.over:
            if snapshot.orphan:
                adopt([job])
            yield None
        self.job = None
        if snapshot.on:
            begun = [event.reason for event in read_events(job) if isinstance(event, Requeued)]
            self._notes += [f"job {job.short_id} was begun again: {reason}" for reason in begun]
        return snapshot
