"""The Jobs screen: everything that runs or ran, newest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.jobs.cancel import cancel, remove
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.doubt import MEANING, tells_doubt
from hfbench.jobs.history import JobRow
from hfbench.jobs.snapshot import State
from hfbench.paths import jobs_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.confirm import Confirm
from hfbench.screens.messages import Trouble
from hfbench.sweeps.naming import cell_in
from hfbench.text import printable
from hfbench.units import show_ago, show_elapsed
from hfbench.widgets.cells import Span, clip
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import State as Sign
from hfbench.widgets.help import Help
from hfbench.widgets.line_block import LineBlock
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import MARK, Record, toggled
from hfbench.widgets.record_table import RecordTable

SIGNS: dict[State, Sign] = {
    State.FINISHED: "ok",
    State.FAILED: "error",
    State.DIED: "error",
    State.CANCELLED: "muted",
    State.QUEUED: "warn",
    State.CANCELLING: "warn",
}
COLUMNS = (
    Column("job", "Job"),
    Column("state", "State", min=9),
    Column("action", "Action", priority=1, flexible=True, min=12, max=18),
    Column("model", "Model", priority=3, flexible=True, min=8, max=30, middle=True),
    Column("label", "Label", priority=4, flexible=True, min=6, max=20),
    Column("ran", "Ran", align="right"),
    Column("result", "Result", flexible=True, min=20, max=48),
    Column("started", "Started", align="right", priority=2),
)
OF_SWEEPS = tuple(
    {
        "action": Column("what", "What", flexible=True, min=24, max=48),
        "result": Column("result", "Result", flexible=True, min=13, max=48),
        "label": Column("label", "Label", priority=5, flexible=True, min=6, max=20),
    }.get(column.key, column)
    for column in COLUMNS
)
"""The columns where jobs of sweeps are among the rows: which cell one is stands before its action."""
FIRST = 100
"""Jobs that are shown before all of them are."""

AGO = 10.0
"""Seconds between two repaints of how long ago jobs began."""

TICK = 1.0
"""Seconds between two repaints of running times."""


class JobsScreen(BenchScreen):
    """All jobs of the jobs folder, those of other terminals too."""

    help = Help(
        "Jobs",
        "Jobs run in processes of their own: they are here whoever started them, and stay when you leave.\n"
        "`enter` opens one, `c` cancels it, `D` deletes a job that is over, `/` filters. `space` marks jobs, `=` "
        "compares those that are marked with the first of them. `?` behind a figure: too few samples for an interval, "
        "or a verdict such as busy-machine.",
    )

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "cancel", id="jobs.cancel"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("space", "mark", "mark", id="jobs.mark"),
        Binding("equals_sign", "compare_marked", "compare", id="jobs.compare"),
        Binding("y", "copy_id", "copy id", id="jobs.copy"),
        Binding("D", "delete", "delete", id="jobs.delete"),
    ]

    _rows: Sequence[JobRow] = ()
    """What the table shows."""
    _told = 0.0
    """When it was told how long ago jobs began."""

    def trail(self) -> tuple[str, ...]:
        """The list itself."""
        return ("Jobs",)

    def body(self) -> ComposeResult:
        """Filter, trouble, table."""
        yield FilterBar()
        yield Notice()
        yield RecordTable(COLUMNS, empty="no jobs yet: 1 goes to the models, B there starts a benchmark")
        yield LineBlock(id="legend")

    def on_mount(self) -> None:
        """Show what is known already and keep running times moving."""
        self.set_focus(self.query_one(RecordTable))
        self.show_rows(self.bench.machine.known_jobs)
        self.set_interval(TICK, self._tick)

    def machine_changed(self) -> None:
        """Other rows, or the reason there are none."""
        super().machine_changed()
        notice, machine = self.query_one(Notice), self.bench.machine
        notice.show(machine.jobs_trouble) if machine.jobs_trouble else notice.clear()
        self.show_rows(machine.known_jobs)

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(RecordTable).filter = message.text

    @on(RecordTable.Chosen)
    def _open(self, message: RecordTable.Chosen) -> None:
        self.bench.open_job(message.key)

    def show_rows(self, rows: Sequence[JobRow]) -> None:
        """Repaint the table: of the same rows as before only what time changes, for there may be ten thousand."""
        now, marked = time.time(), frozenset(self.bench.places.marked_jobs)
        if rows is not self._rows:
            if not self._rows and len(rows) > FIRST:  # the newest are seen at once, the others while they are read
                self.call_after_refresh(self._show_latest)
                rows = rows[:FIRST]
            self._rows, self._told = rows, now
            self.query_one(RecordTable).take_columns(OF_SWEEPS if any(cell_in(row.label) for row in rows) else COLUMNS)
            self.query_one("#legend", LineBlock).show(partial(_legend, any(tells_doubt(row.headline) for row in rows)))
            self.query_one(RecordTable).show([record_of(row, now, marked=row.id in marked) for row in rows])
            return
        seen = frozenset(self.query_one(RecordTable).in_view) if now - self._told >= AGO else frozenset()
        self._told = now if seen else self._told
        changing = [row for row in rows if row.id in seen or not row.state.over]
        self.query_one(RecordTable).update([record_of(row, now, marked=row.id in marked) for row in changing])

    def _show_latest(self) -> None:
        if self.is_mounted:
            self.show_rows(self.bench.machine.known_jobs)

    def _tick(self) -> None:
        if self.in_front and any(not row.state.over for row in self.bench.machine.known_jobs):
            self.show_rows(self.bench.machine.known_jobs)

    async def action_copy_id(self) -> None:
        """The id of the job under the cursor."""
        if key := self.query_one(RecordTable).current:
            await self.copy(key)

    def action_mark(self) -> None:
        """Mark the job under the cursor, or take its mark away."""
        if key := self.query_one(RecordTable).current:
            self.bench.places.marked_jobs = toggled(self.bench.places.marked_jobs, key)
            self._told = 0.0  # what is in view is told anew at once
            self.show_rows(self.bench.machine.known_jobs)

    def action_compare_marked(self) -> None:
        """Compare the jobs that are marked, all with the first."""
        known = {row.id for row in self.bench.machine.known_jobs}
        self.bench.places.marked_jobs = [job for job in self.bench.places.marked_jobs if job in known]
        if len(self.bench.places.marked_jobs) < 2:
            self.notify("mark two jobs or more with space, then = compares them")
        else:
            self.bench.open_compare(self.bench.places.marked_jobs)

    def action_cancel(self) -> None:
        """Ask, then stop the job under the cursor."""
        key = self.query_one(RecordTable).current
        if any(row.id == key and row.state.over for row in self.bench.machine.known_jobs):
            self.notify("the job is over: there is nothing to cancel")
        else:
            self._ask("cancel", cancel)

    def action_delete(self) -> None:
        """Ask, then delete the folder of the job under the cursor."""
        self._ask("delete the folder of", remove)

    @work
    async def _ask(self, verb: str, deed: Callable[[JobDirectory], object]) -> None:
        if (key := self.query_one(RecordTable).current) is None:
            return
        job = JobDirectory(jobs_root() / key)
        if await self.app.push_screen_wait(Confirm(f"{verb} job {job.short_id}?")):
            self._do(deed, job)

    def _do(self, deed: Callable[[JobDirectory], object], job: JobDirectory) -> None:
        def done(stopped: Stopped, post: Callable[[Message], None]) -> None:
            try:
                deed(job)
            finally:
                if self.bench.watchers:
                    self.bench.watchers.look_now()

        Background(self, Trouble).start(done)


def _legend(doubt: bool, width: int) -> list[list[Span]]:
    """What the sign of doubt means, where a result has one."""
    return [[(clip(MEANING, width), "muted")]] if doubt else []


def record_of(row: JobRow, now: float, *, marked: bool = False) -> Record:
    """A job as a row of the table."""
    told = row.headline if row.state is State.FINISHED or not row.note else row.note
    return Record(
        key=row.id,
        cells={
            "job": f"{MARK} {row.short_id}" if marked else row.short_id,
            "state": str(row.state),
            "action": printable(row.action),
            "what": printable("  ".join(filter(None, (cell_in(row.label), row.action)))),
            "label": printable(row.label),
            "model": printable(row.model.rstrip("/").rpartition("/")[2]),
            "ran": show_elapsed(row.seconds(now)),
            "result": printable(told),
            "started": show_ago(now - row.created),
        },
        states={"state": SIGNS.get(row.state, "")},
        order={"ran": row.seconds(now), "started": -row.created, "job": -row.created},
    )
