"""Shows a job or an inline run on stderr while it goes: a line that redraws on a terminal, nothing elsewhere."""

from __future__ import annotations

import shutil
import signal
import sys

from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Event, Log
from hfbench.jobs.follow import snapshots
from hfbench.jobs.run import Run
from hfbench.jobs.snapshot import JobSnapshot, State
from hfbench.text import clip, printable
from hfbench.units import show_elapsed, show_value


class StderrRun(Run):
    """The run of an action in this process: its warnings go to stderr."""

    def __init__(self) -> None:
        super().__init__(emit=_show)


def watch(job: JobDirectory, *, quiet: bool = False) -> JobSnapshot:
    """Follow a job to its end. Ctrl-C cancels it and waits for it to stop; a second one leaves at once."""
    live = not quiet and sys.stderr.isatty()
    snapshot: JobSnapshot | None = None
    try:
        for snapshot in snapshots(job):
            if live:
                _redraw(status_line(snapshot))
    except KeyboardInterrupt:
        if live:
            _redraw("cancelling ...")
        snapshot = cancel(job)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if live:
            _redraw("")
    assert snapshot is not None
    return snapshot


def status_line(snapshot: JobSnapshot) -> str:
    """One line: state, phase, share, time left and the latest figure."""
    if snapshot.state is State.QUEUED:
        return f"queued: waits for {snapshot.waits_for or 'the device'} ({snapshot.device})"
    parts = [str(snapshot.state), show_elapsed(snapshot.elapsed())]
    if progress := snapshot.progress:
        share = "" if progress.share is None else f" {progress.share:4.0%}"
        parts.append(f"{progress.phase}{share}")
        if progress.eta is not None:
            parts.append(f"~{show_elapsed(progress.eta)} left")
    parts += [f"{name} {show_value(s.last, s.unit)}" for name, s in list(snapshot.series.items())[-3:]]
    return printable("  ".join(parts))


def _redraw(line: str) -> None:
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r\x1b[K{clip(line, width, ellipsis='...')}")
    sys.stderr.flush()


def _show(event: Event) -> None:
    if isinstance(event, Log) and event.level != "info":
        print(f"hfbench: {printable(event.text)}", file=sys.stderr)
