"""Folds a sweep's journal, its results and its running jobs into a snapshot, for every front end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.doubt import verdicts_in
from hfbench.jobs.snapshot import Follower, JobSnapshot
from hfbench.jobs.state import State
from hfbench.paths import jobs_root
from hfbench.sweeps.folder import LineTail, SweepFolder, made, newer_line, sweep_folders
from hfbench.sweeps.grid import best_cell, grid, pareto
from hfbench.sweeps.metrics import figures, metric_names, outputs_hash, prefixes
from hfbench.sweeps.model import (
    EARLIER,
    OVER,
    Axis,
    CellState,
    CellView,
    Figure,
    Grid,
    SweepRow,
    SweepSnapshot,
    SweepState,
)

ENDS = ("finished", "stopped", *EARLIER)
"""What a conductor says it did when it leaves; all else is a beginning."""
UNDER_WAY = 0.99
"""The most that a cell tells to be done while it runs: its job tells the share of a phase, and may begin another."""


@dataclass
class _Cell:
    """A cell as the journal tells it so far."""

    view: CellView
    steps_done: int = 0
    began: float | None = None
    job: Follower | None = None
    found: dict[int, dict[int, dict[str, Figure]]] = field(default_factory=dict)
    """Figures by attempt and step: results may be read before the line of the journal that tells of their attempt."""

    outputs: dict[int, str] = field(default_factory=dict)
    """What was given out, by attempt."""
    verdicts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """What steps said of their own runs, by attempt."""


class SweepFollower:
    """Reads a sweep again and again; only what is new costs. A damaged or newer folder is shown as far as it goes."""

    def __init__(self, folder: Path, *, metrics: bool = True) -> None:
        """Without `metrics` the results are not read, which are most of a folder."""
        self.folder = SweepFolder(folder)
        self._metrics = metrics
        self._journal, self._results = LineTail(self.folder.journal), LineTail(self.folder.results)
        self._cells: dict[int, _Cell] = {}
        self._axes: tuple[Axis, ...] = ()
        self._steps: list[dict[str, Any]] = []
        self._prefixes: dict[int, str] = {}
        self._sessions: list[tuple[float, float]] = []
        """When somebody began to conduct it, and the last that was heard of that."""
        self._slots = 1
        self._stopped = False
        self._why = ""
        self._unknown = False
        self._damaged = 0
        self._lost: set[object] = set()
        """Cells that the results tell of and the journal does not."""

    def read(self) -> SweepSnapshot:
        """The sweep as it is now."""
        conducted = self.folder.conducted()  # asked before reading: a conductor writes its last line before it lets go
        for line in self._journal.read():
            self._fold(line)
        for event in self._results.read() if self._metrics else ():
            self._take(event)
        now = time.time()
        cells = tuple(self._look(cell, now, conducted) for cell in self._cells.values())
        state = self._state(conducted, cells)
        about = self.folder.about
        left = _left(cells, self._slots, about.get("estimate"))
        on = about.get("on")
        return SweepSnapshot(
            name=self.folder.name,
            folder=self.folder.path,
            state=state,
            reason=self._reason(state),
            made=made(self.folder),
            seconds=self._seconds(now if conducted else None),
            left_s=left[0] if state == "running" else None,
            left_from=left[1] if state == "running" else "",
            on=tuple(map(str, on)) if isinstance(on, list) and on else ("local",),
            axes=self._axes,
            cells=cells,
            newer=self.folder.newer or self._unknown,
            lost=0 if self._cells else len(self._lost),
        )

    def _fold(self, line: Mapping[str, Any]) -> None:
        """Take one line of the journal in; one that lacks what is known of its kind is passed over and counted."""
        self._unknown |= newer_line(line)
        try:
            at, kind = float(line["at"]), line["kind"]
            if self._sessions and (kind != "conductor" or line["did"] in ENDS):
                self._sessions[-1] = self._sessions[-1][0], at
            match kind:
                case "conductor":
                    self._conductor(line, at)
                case "planned":
                    self._planned(line)
                case "step":
                    self._step(line, at)
                case "ended":
                    self._ended(line)
                case "again":
                    for cell in [self._cells[number] for number in line["cells"]]:  # all or none
                        self._again(cell)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            self._damaged += 1

    def _conductor(self, line: Mapping[str, Any], at: float) -> None:
        self._stopped, self._why = line["did"] == "stopped", str(line.get("why") or "")
        if line["did"] not in ENDS:
            self._sessions.append((at, at))
            self._slots = int(line.get("slots") or 1)

    def _planned(self, line: Mapping[str, Any]) -> None:
        self._axes = tuple(Axis(str(each["name"]), tuple(each["values"])) for each in line["axes"])
        self._steps = list(line["steps"])
        self._prefixes = prefixes(self._steps)
        names = [axis.name for axis in self._axes]
        for number, values in enumerate(line["cells"], 1):
            self._cells[number] = _Cell(CellView(number=number, values=dict(zip(names, values, strict=True))))

    def _step(self, line: Mapping[str, Any], at: float) -> None:
        cell = self._cells[line["cell"]]
        if line["attempt"] != cell.view.attempt or cell.began is None:
            cell.began = at
            cell.view = replace(cell.view, metrics={}, jobs=(), verdicts=(), progress=None)
        jobs, job = cell.view.jobs, line.get("job")
        if job and job not in jobs:
            jobs = (*jobs, str(job))
        cell.steps_done = int(line["step"]) - 1
        cell.job = Follower(JobDirectory(jobs_root() / str(job))) if job else None
        state: CellState = "running"
        on = str(line.get("on") or "local")
        cell.view = replace(cell.view, state=state, reason="", on=on, attempt=line["attempt"], jobs=jobs)

    def _again(self, cell: _Cell) -> None:
        cell.view = CellView(number=cell.view.number, values=cell.view.values, attempt=cell.view.attempt)
        cell.began, cell.job, cell.steps_done = None, None, 0

    def _ended(self, line: Mapping[str, Any]) -> None:
        cell = self._cells[line["cell"]]
        passed, failed = line.get("expectations") or (0, 0)
        state = EARLIER.get(line["state"], line["state"])
        cell.job = None
        cell.view = replace(
            cell.view,
            state=state if state in OVER else "queued",
            reason=str(line.get("reason") or ""),
            seconds=float(line.get("seconds") or 0.0),
            attempt=int(line.get("attempt") or cell.view.attempt),
            on=cell.view.on or str(line.get("on") or ""),
            progress=1.0 if state == "finished" else cell.view.progress,
            expectations=(int(passed), int(failed)),
        )

    def _take(self, event: Mapping[str, Any]) -> None:
        """Take one event of the results in: of a finished step, its figures."""
        try:
            if (number := event["number"]) not in self._cells:
                self._lost.add(number)
                return
            cell = self._cells[number]
            if event["event"] == "step_finished" and (given := outputs_hash(event.get("result"))):
                cell.outputs[int(event["attempt"])] = given
            if event["event"] == "step_finished" and (words := verdicts_in(event.get("result"))):
                attempt = int(event["attempt"])
                cell.verdicts[attempt] = tuple(dict.fromkeys((*cell.verdicts.get(attempt, ()), *words)))
            if event["event"] == "step_finished" and (prefix := self._prefixes.get(event["step"])) is not None:
                steps = cell.found.setdefault(int(event["attempt"]), {})
                steps[event["step"]] = figures(event.get("result"), event.get("metrics"), prefix)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return

    def _look(self, cell: _Cell, now: float, conducted: bool) -> CellView:
        """The cell now: a running one is as far as its job is; one that nobody ends any more is to be done again."""
        if steps := cell.found.pop(cell.view.attempt, None):
            found = {name: each for step in sorted(steps) for name, each in steps[step].items()}
            outputs, words = cell.outputs.get(cell.view.attempt, ""), cell.verdicts.get(cell.view.attempt, ())
            cell.view = replace(cell.view, metrics={**cell.view.metrics, **found}, outputs=outputs, verdicts=words)
        view = cell.view
        if view.state != "running":
            return view
        job = cell.job.read() if cell.job else None
        if not conducted and (job is None or job.state.over):
            return replace(view, state="queued", reason=job.reason if job else "")
        if job and job.state is State.QUEUED:
            return replace(view, state="queued", reason=_waiting(job))
        share = job.progress.share if job and job.progress else None
        count = max(1, len(self._steps))
        progress = None if share is None and count == 1 else min(UNDER_WAY, (cell.steps_done + (share or 0.0)) / count)
        began = job.started if job and job.started and not cell.steps_done else cell.began
        trouble = job.trouble if job else ""
        return replace(view, progress=progress, seconds=max(0.0, now - (began or now)), reason=trouble)

    def _state(self, conducted: bool, cells: tuple[CellView, ...]) -> SweepState:
        if conducted:
            return "running"
        if cells and all(cell.state in OVER for cell in cells):
            return "finished"
        return "stopped" if self._stopped else "interrupted"

    def _reason(self, state: SweepState) -> str:
        name = self.folder.name
        if not self.folder.path.exists():
            return "its folder is gone"
        if not self.folder.about:
            return "sweep.json is absent or damaged"
        if self.folder.newer or self._unknown:
            made_by = self.folder.about.get("hfbench") or "a newer version"
            return f"written by hfbench {made_by}, which is newer than this one: shown as far as it can be read"
        damaged = f"damaged lines of its journal, which were passed over: {self._damaged}" if self._damaged else ""
        return "; ".join(filter(None, [self._standing(state, name), damaged]))

    def _standing(self, state: SweepState, name: str) -> str:
        """Why nobody conducts it, and how it goes on; empty while somebody does and when it is done."""
        if self._lost and not self._cells and state != "running":
            lost = f"its journal is empty: what it told of cells that were begun is lost ({len(self._lost)} or more)"
            return f"{lost}; hfbench sweep resume {name} takes up those of their jobs that are still there"
        if state == "stopped":
            return f"{self._why or 'it was stopped'}; hfbench sweep resume {name} goes on"
        if state == "interrupted":
            return f"its conductor is gone; hfbench sweep resume {name} goes on without redoing finished cells"
        return ""

    def _seconds(self, now: float | None) -> float:
        spans = list(self._sessions)
        if now is not None and spans:
            spans[-1] = spans[-1][0], max(now, spans[-1][1])
        return sum(end - begin for begin, end in spans)


def _waiting(job: JobSnapshot) -> str:
    """What a queued job waits for: what its executor says, or who holds its device."""
    if job.on:
        return job.waits_for
    holds = f", which holds {job.device}" if job.waits_for and job.device else ""
    return f"waits for {job.waits_for or job.device or 'its turn'}{holds}"


def read_sweep(folder: Path) -> SweepSnapshot:
    """One look at a sweep."""
    return SweepFollower(folder).read()


def list_sweeps(root: Path) -> tuple[SweepRow, ...]:
    """All sweeps below a root, the latest first; SweepsFolderError when it cannot be read."""
    rows = []
    for folder in sweep_folders(root):
        found = SweepFollower(folder.path, metrics=False).read()
        rows.append(
            SweepRow(
                name=found.name,
                folder=found.folder,
                state=found.state,
                reason=found.reason,
                made=found.made,
                seconds=found.seconds,
                on=found.on,
                counts=found.counts(),
            )
        )
    return tuple(sorted(rows, key=lambda row: row.made, reverse=True))


def _left(cells: tuple[CellView, ...], slots: int, estimate: object) -> tuple[float | None, str]:
    """Seconds left and what they are reckoned from; (None, "") where nothing tells."""
    ended = [cell.seconds for cell in cells if cell.state in ("finished", "failed") and cell.seconds > 0]
    usual, source = (statistics.median(ended), _source(len(ended))) if ended else (None, "")
    if usual is None and isinstance(estimate, dict) and isinstance(estimate.get("cell_s"), (int, float)):
        usual, source = float(estimate["cell_s"]), str(estimate.get("from") or "")
    if usual is None:
        return None, ""
    waiting = sum(cell.state == "queued" for cell in cells) * usual
    under_way = [max(0.0, usual - cell.seconds) for cell in cells if cell.state == "running"]
    at_once = max(1, min(slots, sum(cell.state in ("queued", "running") for cell in cells)))
    return max([(waiting + sum(under_way)) / at_once, *under_way]), source


def _source(count: int) -> str:
    return "the first cell" if count == 1 else f"the first {count} cells"


__all__ = [
    "Axis",
    "CellView",
    "Figure",
    "Grid",
    "SweepFollower",
    "SweepRow",
    "SweepSnapshot",
    "best_cell",
    "grid",
    "list_sweeps",
    "metric_names",
    "pareto",
    "read_sweep",
]
