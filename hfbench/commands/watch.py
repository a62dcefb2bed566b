"""Shows a job or an inline run on stderr while it goes: a line that redraws on a terminal, elsewhere one a phase."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from hfbench.exits import complain
from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import ADVICE, Event, Log, Progress
from hfbench.jobs.follow import snapshots
from hfbench.jobs.snapshot import JobSnapshot, State, advance, read_job
from hfbench.text import clip, printable
from hfbench.units import show_elapsed, show_value

SLOW = 5.0
"""Seconds a job runs before its phases are told where no line can be redrawn: what is over sooner needs none."""


class ProgressLine:
    """What an action in this process tells: warnings as lines, and on a terminal one line with how far it is."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = not quiet and is_live()
        self._snapshot = JobSnapshot(id="", action="", state=State.RUNNING, started=time.time())

    def show(self, event: Event) -> None:
        """Take in what was told."""
        if isinstance(event, Log) and event.level != "info":
            self.clear()
            complain(event.text)
        elif isinstance(event, Progress) and self._live:
            self._snapshot = replace(self._snapshot, phases=advance(self._snapshot.phases, event))
            redraw(status_line(self._snapshot))

    def clear(self) -> None:
        """Take the line away, if one was drawn."""
        if self._snapshot.phases:
            redraw("")


def watch(job: JobDirectory, *, quiet: bool = False) -> JobSnapshot:
    """Follow a job to its end; Ctrl-C stops the watching only."""
    live = not quiet and is_live()
    snapshot = read_job(job)
    told = JobLines(live=live)

    def wait(seconds: float) -> None:
        if not live and not quiet:
            told.phase(snapshot)
        time.sleep(seconds)

    try:
        for snapshot in snapshots(job, sleep=wait):
            if not quiet:
                told.advice(snapshot)
                told.obstacle(snapshot)
            if live:
                redraw(status_line(snapshot))
    finally:
        if live:
            redraw("")
    return snapshot


class JobLines:
    """What is told of a job line by line: its advice, what it waits for, and the phases of one that takes long."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._advised = -math.inf
        self._phase = ""
        self._obstacles = set[str]()

    def advice(self, snapshot: JobSnapshot) -> None:
        """What came since the last look."""
        for each in snapshot.logs:
            if each.level == ADVICE and each.at > self._advised:
                self._advised = each.at
                self._say(each.text)

    def obstacle(self, snapshot: JobSnapshot) -> None:
        """What keeps a job from going on, or from being heard of; each sentence once."""
        for sentence in obstacles(snapshot):
            if sentence not in self._obstacles:
                self._obstacles.add(sentence)
                self._say(sentence)

    def phase(self, snapshot: JobSnapshot) -> None:
        """The phase of a job that has run for a while, once."""
        progress, seconds = snapshot.progress, snapshot.elapsed()
        if progress and not snapshot.state.over and seconds >= SLOW and progress.phase != self._phase:
            self._phase = progress.phase
            complain(f"{show_elapsed(seconds)}  {progress.phase}")

    def _say(self, sentence: str) -> None:
        if self._live:
            redraw("")
        complain(sentence)


def obstacles(snapshot: JobSnapshot) -> Iterator[str]:
    """What keeps a job from going on, or from being heard of, in sentences."""
    if snapshot.state.over:
        return
    if snapshot.trouble:
        yield snapshot.trouble
    if snapshot.state is State.QUEUED and snapshot.waits_for:
        yield _waiting(snapshot)


def watch_or_cancel(job: JobDirectory, *, quiet: bool = False) -> tuple[JobSnapshot, bool]:
    """Follow a job to its end, which Ctrl-C brings about; was it? A second Ctrl-C leaves at once."""
    try:
        return watch(job, quiet=quiet), False
    except KeyboardInterrupt:
        if not quiet:
            complain("cancelling the job; Ctrl-C again leaves it to itself")
        return cancel(job), True


def is_live() -> bool:
    """True when stderr is a terminal on which a line can be drawn again."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("", "dumb", None)


def status_line(snapshot: JobSnapshot) -> str:
    """One line: state, phase, share, time left and the latest figures; of a finished job, what it is remembered by."""
    if snapshot.state is State.QUEUED:
        return _waiting(snapshot)
    parts = [str(snapshot.state), show_elapsed(snapshot.elapsed())]
    if snapshot.trouble and not snapshot.state.over:
        parts.append(snapshot.trouble)
    if snapshot.state is State.FINISHED:
        return printable("  ".join(filter(None, [*parts, snapshot.headline()])))
    if progress := snapshot.progress:
        share = "" if progress.share is None else f" {progress.share:4.0%}"
        parts.append(f"{progress.phase}{share}")
        if not snapshot.state.over and (left := progress.left(time.time())) is not None:
            parts.append(f"~{show_elapsed(left)} left")
    if not snapshot.state.over:
        parts += [f"{name} {show_value(s.last, s.unit)}" for name, s in list(snapshot.series.items())[-3:]]
    return printable("  ".join(parts))


def _waiting(snapshot: JobSnapshot) -> str:
    """What a queued job waits for: a device that another holds, or what its executor says."""
    if snapshot.waits_elsewhere:
        return printable(f"queued on {snapshot.on}: {snapshot.waits_for}")
    return f"queued: waits for {snapshot.waits_for or 'the device'} ({snapshot.device})"


def redraw(line: str) -> None:
    """Write a line over the one before, cut to the terminal; an empty one takes it away."""
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r\x1b[K{clip(line, width, ellipsis='...')}")
    sys.stderr.flush()
