"""The Job screen: one job, live, or the same page a year later."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from hfbench.actions.params import command_line
from hfbench.actions.registry import look_up
from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import snapshots
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.jobs.tail import log_tail
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.confirm import Confirm
from hfbench.screens.job_text import JobText, environment_lines, job_text, phases, request_lines, status
from hfbench.screens.messages import Latest, Trouble
from hfbench.text import printable
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.log_view import LogView
from hfbench.widgets.notice import Notice
from hfbench.widgets.plot import Plot
from hfbench.widgets.progress_line import ProgressLine

PANES = ("result", "log", "output", "environment", "request")
SHOWN_METRICS = 4
PACE = 0.2
"""Seconds between two pictures of a live job: more often is not read, and over SSH each one costs."""


class SnapshotRead(Latest):
    """A job's newest snapshot and what the page says of it."""

    def __init__(self, snapshot: JobSnapshot, text: JobText) -> None:
        self.snapshot, self.text = snapshot, text
        super().__init__()


class PaneRead(Latest):
    """The lines of a pane that is read from a file."""

    def __init__(self, pane: str, lines: list[str]) -> None:
        self.pane, self.lines = pane, lines
        super().__init__()


class JobScreen(BenchScreen):
    """Progress, metrics, log and result of one job."""

    has_own_figures = True

    help = Help(
        "Job",
        "The job runs in a process of its own; this page only reads its folder, so that you can leave and come back.\n"
        "`l` walks through result, log, output, environment and request. `c` asks before it cancels. `=` compares it "
        "with the jobs that are marked; where none is, it marks this one and goes to the jobs for another.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "cancel", id="job.cancel"),
        Binding("l", "pane(1)", "log", id="job.pane"),
        Binding("e", "show_pane('environment')", "environment", id="job.environment"),
        Binding("R", "rerun", "rerun", id="job.rerun"),
        Binding("equals_sign", "compare_job", "compare", id="job.compare"),
        Binding("y", "copy_command", "copy command", id="job.copy"),
        Binding("escape", "back", "back", id="screen.back"),
    ]

    DEFAULT_CSS = """
    JobScreen {
        & #heading { height: 1; color: $text-muted; }
        & ProgressLine { margin: 0 0 1 0; }
        & #metrics { height: auto; }
        & Plot { height: 6; display: none; }
        &.-over Plot { height: 4; }
        &.-over #metrics { display: none; }
        & #pane { height: 1; text-style: bold; }
    }
    """

    snapshot: reactive[JobSnapshot | None] = reactive(None, repaint=False)  # each part repaints what changed of it
    pane: reactive[str] = reactive("", repaint=False)

    def __init__(self, job: JobDirectory) -> None:
        super().__init__()
        self.job = job
        self.text: JobText | None = None
        self._following, self._reading, self._stopping = (Background(self, Trouble) for _ in range(3))
        self._painted: tuple[str, ...] = ()
        self._wish: Callable[[], object] | None = None
        """What was asked for before the job was read."""

    def trail(self) -> tuple[str, ...]:
        """Which job."""
        action = self.snapshot.action if self.snapshot else self.job.id[20:].rpartition("-")[0]
        return ("Jobs", f"{action} {self.job.short_id}")

    def status(self) -> tuple[str, ...]:
        """How far it is, instead of the machine."""
        return status(self.snapshot) if self.snapshot else ()

    @property
    def at_rest(self) -> bool:
        """The job was read."""
        return super().at_rest and self.snapshot is not None

    @property
    def takes_keys(self) -> bool:
        """Keys that follow one that waits for the job wait behind it."""
        return self._wish is None

    def body(self) -> ComposeResult:
        """From the request to the log."""
        yield Static(id="heading", markup=False)
        yield ProgressLine()
        yield Notice()
        yield FactsTable(id="gpu")
        yield Static(id="metrics", markup=False)
        yield Plot()
        yield Static(id="pane", markup=False)
        yield LogView(empty="nothing yet")

    def on_mount(self) -> None:
        """Begin to follow."""
        self.set_focus(self.query_one(LogView))
        self._following.start(self.follow)
        self.set_interval(1.0, self._tick)

    def machine_changed(self) -> None:
        """Nothing here depends on it, but what was read while this page was covered is painted now."""
        super().machine_changed()
        self.watch_snapshot()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._following.stop()
        self._reading.stop()

    def follow(self, stopped: Stopped, post: Callable[[Message], None]) -> None:
        """Read the job until it is over or the page is left."""
        for snapshot in snapshots(self.job, stop=stopped):
            post(SnapshotRead(snapshot, job_text(snapshot)))
            time.sleep(0 if snapshot.state.over else PACE)

    @on(SnapshotRead)
    def _read(self, message: SnapshotRead) -> None:
        if not self.app.is_running:
            return  # leaving: the widgets are gone already
        first = self.snapshot is None
        ended = message.snapshot.state.over and (first or not (self.snapshot and self.snapshot.state.over))
        self.text = message.text
        self.snapshot = message.snapshot
        if first or ended:
            self.refresh_bindings()
            self.pane = "result" if message.text.result else "log"
        self._paint_pane()
        if self._wish:
            self.call_later(self._grant)

    def _read_first(self, wish: Callable[[], object]) -> bool:
        """True when the job was not read yet; the wish is granted once it is."""
        if self.snapshot is None:
            self._wish = wish
        return self.snapshot is None

    async def _grant(self) -> None:
        if self._wish:
            granted = self._wish()
            if isawaitable(granted):
                await granted
        self._wish = None  # only now: the next key is for what the wish opened

    def watch_snapshot(self) -> None:
        """Paint the parts that changed."""
        if self.snapshot is None or self.text is None or not self.is_mounted or not self.in_front:
            return
        text = self.text
        self.refresh_frame()
        self.set_class(bool(text.result), "-over")  # the result's own table tells more
        if (parts := (text.heading, "\n".join(text.metrics[:SHOWN_METRICS]))) != self._painted:
            taller = parts[1].count("\n") != "".join(self._painted[1:]).count("\n") or not self._painted
            self._painted = parts
            self.query_one("#heading", Static).update(parts[0], layout=False)
            self.query_one("#metrics", Static).update(parts[1], layout=taller)
        self.query_one(ProgressLine).show(list(text.phases))
        notice = self.query_one(Notice)
        if text.trouble:
            notice.show(f"{self.snapshot.state}: {text.trouble}")
        else:
            notice.clear()
        gpu = self.query_one("#gpu", FactsTable)
        gpu.display = bool(text.gpu)
        gpu.show(text.gpu.facts(glyphs_of(self.app)))
        plot = self.query_one(Plot)
        plot.display = text.plot is not None
        if text.plot is not None:
            plot.show(text.plot)

    def watch_pane(self) -> None:
        """Another pane."""
        if self.is_mounted and self.pane:
            self.query_one("#pane", Static).update(self.pane)
            self.query_one(LogView).clear()
            self._paint_pane()

    @on(PaneRead)
    def _pane_read(self, message: PaneRead) -> None:
        if message.pane == self.pane:
            self._show(message.lines)

    def _paint_pane(self) -> None:
        if self.text is None or self.snapshot is None:
            return
        if self.pane == "result":
            self._show(self.text.result or ("no result yet",))
        elif self.pane == "log":
            self._show(self.text.log)
        elif self.pane == "request":
            self._show(request_lines(self.snapshot, str(self.job.path)))
        elif self.pane:
            pane = self.pane
            self._reading.start(lambda stopped, post: post(PaneRead(pane, self.pane_lines(pane))))

    def _show(self, lines: tuple[str, ...] | list[str]) -> None:
        view = self.query_one(LogView)
        if view.tail(len(lines) + 1) != list(lines):
            view.show(lines, from_top=self.pane not in ("output", "log"))

    def pane_lines(self, pane: str) -> list[str]:
        """The lines of a pane that shows a file of the job."""
        if pane == "output":
            return [printable(line) for line in log_tail(self.job, lines=2000)]
        return environment_lines(self.job.read("environment.json"))

    def _tick(self) -> None:
        if self.in_front and self.snapshot and not self.snapshot.state.over:
            self.refresh_frame()
            self.query_one(ProgressLine).show(phases(self.snapshot))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is left to cancel of a job that is over."""
        if action == "cancel":
            return self.snapshot is None or not self.snapshot.state.over
        return super().check_action(action, parameters)

    def action_pane(self, step: int) -> None:
        """The next pane."""
        at = PANES.index(self.pane) if self.pane in PANES else 0
        self.pane = PANES[(at + step) % len(PANES)]

    def action_show_pane(self, pane: str) -> None:
        """One pane."""
        self.pane = pane

    @work
    async def action_cancel(self) -> None:
        """Ask, then stop the job."""
        if self._read_first(self.action_cancel):
            return
        if self.snapshot is None or self.snapshot.state.over:
            self.notify("the job is over: there is nothing to cancel")
        elif await self.app.push_screen_wait(Confirm(f"cancel job {self.job.short_id}?")):
            self._stopping.start(self.stop_job)

    def stop_job(self, stopped: Stopped, post: Callable[[Message], None]) -> None:
        """Stop it; the follower sees how it ends."""
        cancel(self.job)

    def action_compare_job(self) -> None:
        """Compare it with the jobs that are marked, or mark it as the first of two."""
        others = [job for job in self.bench.places.marked_jobs if job != self.job.id]
        if others:
            self.bench.open_compare([*others, self.job.id])
            return
        self.bench.places.marked_jobs = [self.job.id]
        self.bench.action_go("jobs")
        self.notify("this job is marked: mark another with space, then = compares them")

    def action_rerun(self) -> None:
        """The form, filled as this job was."""
        if self._read_first(self.action_rerun):
            return
        if self.snapshot and look_up(self.snapshot.action):
            self.bench.open_form(
                self.snapshot.action, self.snapshot.params, runs_in=_asked_in(self.snapshot), on=self.snapshot.on
            )
        else:
            self.notify("this hfbench does not know the job's action")

    async def action_copy_command(self) -> None:
        """The command that does the same again."""
        if self._read_first(self.action_copy_command):
            return
        spec = look_up(self.snapshot.action) if self.snapshot else None
        if spec and self.snapshot:
            words, asked = ["hfbench", *spec.name.split(".")], _asked_in(self.snapshot)
            command = command_line(words, spec.params, self.snapshot.params)
            options = {"--in": asked, "--on": self.snapshot.on}
            await self.copy(
                " ".join([command, *(f"{flag} {shlex.quote(text)}" for flag, text in options.items() if text)])
            )


def _asked_in(snapshot: JobSnapshot) -> str:
    """The environment somebody asked for; empty where none was, or hfbench chose it."""
    return "" if snapshot.environment_why else snapshot.environment
