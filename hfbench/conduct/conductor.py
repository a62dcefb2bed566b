"""Conducts one sweep: fills free slots with cells, drives them, writes what happens, and stops when asked."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from hfbench.actions.registry import find
from hfbench.conduct.cell import CellRun, Ended
from hfbench.conduct.journal import (
    CellRecord,
    Journal,
    add_unrecorded,
    exit_of,
    label_in,
    planned_fields,
    planned_records,
    records_of,
)
from hfbench.conduct.no_room import NoRoom, tells_no_room
from hfbench.conduct.places import Place, places_for
from hfbench.conduct.warm import WarmWorkers
from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.jobs.cancel import cancel, request_cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.executors.base import OutOfReach
from hfbench.jobs.fingerprint import fingerprint
from hfbench.jobs.launch import JobRequest, launch, launch_many
from hfbench.jobs.process import start_ticks
from hfbench.paths import jobs_root
from hfbench.scripts.interrupt import Stop
from hfbench.scripts.outcomes import about
from hfbench.scripts.plan import Plan, PlannedStep
from hfbench.scripts.progress import say
from hfbench.scripts.results import Results
from hfbench.sweeps.folder import SweepFolder

FASTEST, SLOWEST = 0.02, 0.25
"""Seconds between two looks at the running cells: short after something happened, longer while nothing does."""
A_LOOK = 0.002
"""Seconds of pause for each cell under way: with a thousand of them looking is work."""
CANCELLED = "stopped on request"


@dataclass
class _Active:
    """A cell under way: what drives it, and the request it waits to see launched."""

    run: CellRun
    place: Place
    going: Generator[JobRequest | None, JobDirectory | HfbenchError | None, Ended]
    wants: JobRequest | None = None


@dataclass
class Conductor:
    """Runs the cells of a plan that are not over. Whoever makes one holds the lock of the sweep."""

    sweep: SweepFolder
    plan: Plan
    stop: Stop
    results: Results
    journal: Journal
    again: tuple[int, ...] = ()
    """Numbers of cells that are begun again though they are over."""

    _records: dict[int, CellRecord] = field(default_factory=dict)
    _queue: deque[int] = field(default_factory=deque)
    _active: list[_Active] = field(default_factory=list)
    _no_room: NoRoom | None = None
    """The full disk for which it stops."""
    _warm: WarmWorkers | None = None

    def conduct(self) -> Exit:
        """Run to the end, or until somebody asks to stop; the code a script with these cells would have."""
        about = self.sweep.about
        places = places_for(about.get("on") or ["local"], about.get("slots"), self.plan)
        known = records_of(self.sweep, self.plan)
        lost = known is None and self._has_results()
        if known is not None or lost:
            known = known or planned_records(self.plan)
            add_unrecorded(self.sweep, self.plan, known)
        did = "started" if known is None else "rerun" if self.again else "resumed"
        slots = sum(place.of for place in places)
        self.journal.write("conductor", did=did, pid=os.getpid(), ticks=start_ticks(os.getpid()), slots=slots)
        if known is None or lost:
            self._write_plan()
        self._records = known or planned_records(self.plan)
        if self.again:
            self._take_up_again()
        self._warm = WarmWorkers() if about.get("warm", True) else None
        began = time.monotonic()
        try:
            code = self._run(places)
        except NoRoom as error:
            self._no_room = error
            code = self._stopped()
        finally:
            if self._warm:
                self._warm.close()
        self._tell_end(code, time.monotonic() - began)
        return code

    def step(self, run: CellRun, step: PlannedStep, job: str | None) -> None:
        """A step of a cell begins: for the journal, and for the cell should it have to wait in between."""
        on, record = step.on or "local", self._records[run.number]
        if job:
            record.jobs[step.number] = job
        self.journal.write("step", cell=run.number, step=step.number, job=job, on=on, attempt=run.attempt)

    def event(self, run: CellRun, kind: str, **fields: Any) -> None:
        """An event of a cell, for the results."""
        self.results.write(kind, cell=dict(run.cell.values), number=run.number, attempt=run.attempt, **fields)

    def say(self, sentence: str) -> None:
        """Something worth knowing, for the conductor's log."""
        say(sentence)

    def no_room(self, where: object) -> None:
        """A disk is full: nothing is to be gained by going on."""
        self._no_room = self._no_room or NoRoom(where)

    def _has_results(self) -> bool:
        """Whether cells were run before: without a journal only their jobs tell what became of them."""
        return self.sweep.results.stat().st_size > 0

    def _write_plan(self) -> None:
        self.results.write("run_started", **about(self.plan, fingerprint(), name=self.sweep.name))
        self.journal.write("planned", **planned_fields(self.plan))

    def _take_up_again(self) -> None:
        again = [number for number in self.again if number in self._records and self._records[number].over]
        self.journal.write("again", cells=again)
        for number in again:
            self._records[number] = CellRecord(attempt=self._records[number].attempt)

    def _run(self, places: list[Place]) -> Exit:
        for number, record in self._records.items():
            if record.jobs and not record.over:  # begun by an earlier conductor: its jobs run, or have run
                self._begin(number, next((place for place in places if place.on == record.on), places[0]))
            elif not record.over:
                self._queue.append(number)
        pause = FASTEST
        while self._queue or self._active:
            if self._must_stop():
                return self._stopped()
            moved = self._fill(places)
            moved |= self._launch()
            moved |= self._look()
            pause = FASTEST if moved else min(SLOWEST, pause * 1.3)
            time.sleep(A_LOOK * len(self._active) if moved else max(pause, A_LOOK * len(self._active)))
        return exit_of(self._records)

    def _must_stop(self) -> bool:
        if self.results.failure and tells_no_room(self.results.failure):
            self.no_room(self.sweep.path)
        asked = self.stop.asked() or self.sweep.cancelled.exists()
        return asked or self.results.ended() or self.journal.gone or self._no_room is not None

    def _fill(self, places: list[Place]) -> bool:
        """Give waiting cells to free slots, a place after another in turns; True when one was given."""
        moved = False
        while self._queue and any(place.takes for place in places):
            for place in places:
                if not self._queue or not place.takes:
                    continue
                moved = True
                self._begin(self._queue.popleft(), place)
        return moved

    def _begin(self, number: int, place: Place) -> None:
        record, cell = self._records[number], self.plan.cells[number - 1]
        adopted = dict(record.jobs)
        run = CellRun(
            number=number,
            cell=cell,
            attempt=record.attempt if adopted else record.attempt + 1,
            slot=place.slot(),
            label=label_in(self.sweep, cell),
            stop=self.stop,
            book=self,
            skip_missing=bool(self.sweep.about.get("skip_missing")),
            adopted=adopted,
        )
        record.attempt = run.attempt
        self._active.append(_Active(run, place, run.go()))

    def _launch(self) -> bool:
        """Launch what cells wait for: here one by one, elsewhere in batches; True when there was something."""
        wanting = [each for each in self._active if each.wants]
        batches: dict[str, list[_Active]] = {}
        for each in wanting:
            assert each.wants is not None, "they were chosen for it"
            if each.wants.on:
                batches.setdefault(each.wants.on, []).append(each)
            else:
                self._answer([each], [self._launched_here(each.wants)])
        for batch in batches.values():
            self._answer(batch, _launched_there([each.wants for each in batch if each.wants]))
        return bool(wanting)

    def _launched_here(self, request: JobRequest) -> JobDirectory | HfbenchError:
        try:
            start = self._warm.start_for(find(request.action)) if self._warm and not request.command else None
            return launch(jobs_root(), request, start)
        except HfbenchError as error:
            return error

    def _answer(self, batch: list[_Active], found: Iterable[JobDirectory | HfbenchError]) -> None:
        for each, job in zip(batch, found, strict=True):
            each.wants = None
            if isinstance(job, OutOfReach):
                each.place.shut()
            self._send(each, job)

    def _send(self, active: _Active, answer: JobDirectory | HfbenchError | None) -> Ended | None:
        """Let a cell go on with an answer; how it ended, if it did."""
        try:
            active.wants = active.going.send(answer)
        except StopIteration as end:
            return self._over(active, end.value)
        return None

    def _look(self) -> bool:
        """Let every cell go on that waits for nothing to be launched; True when one ended or wants something."""
        moved = False
        for each in list(self._active):
            if each.wants is None:
                moved |= self._send(each, None) is not None or each.wants is not None
        return moved

    def _over(self, active: _Active, ended: Ended) -> Ended:
        run = active.run
        self._active.remove(active)
        if len(active.place.free) < active.place.of:
            active.place.free.append(run.slot)
        record = self._records[run.number]
        if ended.state == "queued":
            self._wait_again(run, record)
            if ended.reason == record.waits_for:
                return ended
        record.waits_for = ended.reason if ended.state == "queued" else ""
        record.state, record.exit = ended.state, int(ended.exit)
        self.journal.write(
            "ended",
            cell=run.number,
            state=ended.state,
            reason=ended.reason,
            seconds=ended.seconds,
            attempt=run.attempt,
            on=run.slot.on,
            exit=int(ended.exit),
            expectations=ended.expectations,
        )
        return ended

    def _wait_again(self, run: CellRun, record: CellRecord) -> None:
        """Put a cell that could not go on back into the queue; what it has done so far stays."""
        self._queue.append(run.number)
        record.attempt -= not record.jobs

    def _stopped(self) -> Exit:
        """Stop the jobs of all cells and say so; the cells stay to be done."""
        jobs = [each.run.job for each in self._active if each.run.job]
        for job in jobs:
            with contextlib.suppress(HfbenchError):
                request_cancel(job)
        for job in jobs:
            with contextlib.suppress(HfbenchError):
                cancel(job)
        self._active = []
        return self.stop.exit or (self._no_room.exit if self._no_room else Exit.INTERRUPTED)

    def _tell_end(self, code: Exit, seconds: float) -> None:
        over = all(record.over for record in self._records.values())
        why = "" if over else self._why()
        self.results.write("run_finished", counts=self._counts(), exit=int(code), duration_s=seconds)
        did = "finished" if over else "stopped"
        self.journal.write_last("conductor", did=did, pid=os.getpid(), why=why, exit=int(code))

    def _why(self) -> str:
        if self._no_room:
            return str(self._no_room)
        if self.results.failure:
            return str(self.results.failure)
        if self.journal.gone:
            return "its folder was deleted or moved"
        return CANCELLED if self.sweep.cancelled.exists() else "stopped by a signal"

    def _counts(self) -> dict[str, int]:
        states = [record.state or "not_run" for record in self._records.values()]
        return {state: states.count(state) for state in ("finished", "failed", "skipped", "not_run")}


def _launched_there(requests: list[JobRequest]) -> list[JobDirectory | HfbenchError]:
    """The jobs of one batch; where the batch is refused, each gets the reason."""
    try:
        return list(launch_many(jobs_root(), requests))
    except HfbenchError as error:
        return [error] * len(requests)
