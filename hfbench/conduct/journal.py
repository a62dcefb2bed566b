"""The journal of a sweep as its conductor writes it, and what it says about each cell when another goes on."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfbench.codec import encode
from hfbench.conduct.no_room import NoRoom
from hfbench.errors import FULL, UsageError
from hfbench.exits import Exit
from hfbench.jobs.directory import RESERVE_BYTES, JobDirectory, job_ids
from hfbench.paths import jobs_root
from hfbench.scripts.plan import Cell, Plan
from hfbench.sweeps.folder import VERSION, LineTail, SweepFolder, SweepsFolderError, made
from hfbench.sweeps.model import EARLIER, OVER, Plain

RESERVE = "reserve"
"""A file beside the journal that gives way to its last line on a full disk."""


@dataclass
class CellRecord:
    """What the journal says of one cell: the latest attempt, its jobs by step, and how it ended."""

    attempt: int = 0
    jobs: dict[int, str] = field(default_factory=dict)
    on: str = ""
    state: str = ""
    exit: int = 0
    at: float = 0.0
    """When the journal last spoke of it; 0 before that."""
    waits_for: str = ""
    """Why it was last put back into the queue."""

    @property
    def over(self) -> bool:
        """True when nothing of it is left to do."""
        return self.state in OVER


class Journal:
    """Appends whole lines to a file; a torn last line, which a killed writer left, is cut off first. Some room is kept
    aside, so that a sweep on a full disk can still say why it stops."""

    def __init__(self, path: Path) -> None:
        self.path, self._reserve = path, path.parent / RESERVE
        cut_torn_end(path)
        with contextlib.suppress(OSError):
            self._reserve.write_bytes(bytes(RESERVE_BYTES))
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)

    def write(self, kind: str, **fields: Any) -> None:
        """Append one line; NoRoom when the disk has none for it, SweepsFolderError for other trouble."""
        data = {"v": VERSION, "kind": kind, "at": time.time(), **encode(fields)}
        line = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            if error.errno in FULL:
                os.ftruncate(self._fd, size)  # a part that fitted
                raise NoRoom(self.path.parent) from None
            remedy = "resume the sweep once it can"
            raise SweepsFolderError(
                f"the journal cannot be written: {error.strerror}", where=self.path, remedy=remedy
            ) from None

    def write_last(self, kind: str, **fields: Any) -> None:
        """Append the line with which a conductor leaves, in the room that was kept for it where the disk is full."""
        try:
            self.write(kind, **fields)
        except NoRoom:
            with contextlib.suppress(OSError):
                self._reserve.unlink()
            self.write(kind, **fields)

    @property
    def gone(self) -> bool:
        """True once the file was deleted, or its folder moved: nobody reads any more what is written here."""
        return os.fstat(self._fd).st_nlink == 0 or not self.path.exists()

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def cut_torn_end(path: Path) -> None:
    """Cut off what stands behind the last end of line; nothing where the file is absent or whole."""
    try:
        with path.open("rb+") as file:
            data = file.read()
            if data and not data.endswith(b"\n"):
                file.truncate(data.rfind(b"\n") + 1)
    except FileNotFoundError:
        return


def planned_fields(plan: Plan) -> dict[str, Any]:
    """The cells of a plan as the journal keeps them: axes with their values, and the values of each cell in order."""
    axes: dict[str, dict[tuple[bool, Plain], Plain]] = {name: {} for name in plan.cells[0].values}
    for cell in plan.cells:
        for name, value in cell.values.items():
            axes[name].setdefault((isinstance(value, bool), value), value)
    return {
        "sha256": plan.sha256,
        "axes": [{"name": name, "values": list(values.values())} for name, values in axes.items()],
        "steps": [{"action": step.spec.name, "save_as": step.save_as} for step in plan.cells[0].steps],
        "cells": [list(cell.values.values()) for cell in plan.cells],
    }


def records_of(sweep: SweepFolder, plan: Plan) -> dict[int, CellRecord] | None:
    """What the journal says of each cell by its number; None when nothing was planned yet. Damaged lines are passed
    over, as in the snapshot, which counts them.

    UsageError when the script was changed since: its cells would be other ones.
    """
    records: dict[int, CellRecord] | None = None
    for line in LineTail(sweep.journal).read():
        if line.get("kind") == "planned" and "sha256" in line:
            if line["sha256"] != plan.sha256:
                remedy = "put the script back, or run it as a new sweep"
                raise UsageError("the script was changed since the sweep began", where=sweep.script, remedy=remedy)
            records = planned_records(plan)
        elif records is not None:
            with contextlib.suppress(LookupError, TypeError, ValueError, OverflowError):
                _fold(records, line, float(line["at"]))
    return records


def planned_records(plan: Plan) -> dict[int, CellRecord]:
    """The cells of a plan, none of which has begun."""
    return {number: CellRecord() for number in range(1, len(plan.cells) + 1)}


def add_unrecorded(sweep: SweepFolder, plan: Plan, records: Mapping[int, CellRecord]) -> None:
    """Give cells the jobs that a conductor launched and was killed before it could say so: known by their label and
    action among the jobs that the journal does not name, made since it last spoke of their cell.

    A batch is made whole before its first line is written, so the age of other cells' lines tells nothing."""
    told = {line.get("job") for line in LineTail(sweep.journal).read() if isinstance(line.get("job"), str)}
    numbers = {label_in(sweep, cell): number for number, cell in enumerate(plan.cells, 1) if not records[number].over}
    begun = made(sweep)
    since = time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(begun))
    for job_id in (each for each in job_ids(jobs_root()) if each >= since and each not in told):
        job = JobDirectory(jobs_root() / job_id)
        request = job.request
        number = numbers.get(str(request.get("label")))
        if number is None or job.created < (records[number].at or begun):
            continue
        record = records[number]
        last = max(record.jobs, default=0)
        for step in plan.cells[number - 1].steps:
            if step.number > last and step.spec.name == request.get("action"):
                if not record.on:  # no step of this attempt was written down
                    record.attempt += 1
                    record.on = str(request.get("on") or "local")
                record.jobs[step.number] = job_id
                break


def label_in(sweep: SweepFolder, cell: Cell) -> str:
    """The label of the jobs of a cell."""
    return f"{sweep.name} {cell.label}".strip()


def exit_of(records: Mapping[int, CellRecord]) -> Exit:
    """The code of a sweep whose cells are over, as a script's: the environment before steps, steps before
    expectations."""
    codes = {record.exit for record in records.values()}
    return next((code for code in (Exit.ENVIRONMENT, Exit.STEP, Exit.FAILED) if int(code) in codes), Exit.OK)


def _fold(records: dict[int, CellRecord], line: Mapping[str, Any], at: float) -> None:
    """Take one line in, whole or not at all: LookupError, TypeError, ValueError or OverflowError for a damaged one."""
    match line["kind"]:
        case "step":
            record, step, attempt = records[line["cell"]], int(line["step"]), int(line["attempt"])
            if attempt != record.attempt:
                record.attempt, record.jobs = attempt, {}
            record.on, record.at = str(line.get("on") or "local"), at
            if line.get("job"):
                record.jobs[step] = str(line["job"])
        case "ended":
            record, state, code = records[line["cell"]], str(line["state"]), int(line.get("exit") or 0)
            state = EARLIER.get(state, state)
            record.state, record.exit, record.at = state, code, at
        case "again":
            again = {number: records[number].attempt for number in line["cells"]}
            records.update({number: CellRecord(attempt=attempt, at=at) for number, attempt in again.items()})
