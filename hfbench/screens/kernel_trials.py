"""What the jobs there are found of each kernel: its latest check, timing and tuning, read beside the screen."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.state import State
from hfbench.paths import expand, jobs_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.kernel_asks import Post
from hfbench.screens.messages import Latest
from hfbench.widgets.kernel_rows import Trial

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.jobs.history import JobRow

WHAT = {"kernel.check": "check", "kernel.time": "time", "kernel.tune": "tune"}
"""Actions by which a kernel is tried, in the order in which they are told."""

MOST = 200
"""Jobs that are looked at, the newest."""

ALL_RIGHT = re.compile(r"[\d,]+ ok")
"""The headline of a check that found nothing."""


@dataclass
class Tried(Latest):
    """The trials of each kernel, by what actions call it."""

    trials: Mapping[str, tuple[Trial, ...]] = field(default_factory=dict)


class Trials:
    """Reads when a job of these actions began or ended, and tells the screen by `Tried`."""

    def __init__(self, screen: MessagePump) -> None:
        self._reading = Background(screen, lambda error: Tried())  # a convenience: without it the screen is whole
        self._jobs: Sequence[JobRow] | None = None
        self._seen: tuple[tuple[str, State], ...] = ()

    def look(self, jobs: Sequence[JobRow]) -> None:
        """Read anew where these jobs, newest first, are others than before."""
        if jobs is self._jobs:
            return
        self._jobs = jobs
        rows = tuple(islice((row for row in jobs if row.action in WHAT), MOST))
        seen = tuple((row.id, row.state) for row in rows)
        if seen != self._seen:
            self._seen = seen
            self._reading.start(partial(read_trials, rows))

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()


def read_trials(rows: Sequence[JobRow], stopped: Stopped, post: Post) -> None:
    """Post the latest trial of each kernel and action; a job whose request says no kernel is left out."""
    found: dict[str, dict[str, Trial]] = {}
    for row in rows:
        if stopped():
            return
        kernel = kernel_of(JobDirectory(jobs_root() / row.id).request)
        if kernel and row.action not in found.setdefault(kernel, {}):
            found[kernel][row.action] = _trial(row, kernel)
    post(Tried({kernel: tuple(each[action] for action in WHAT if action in each) for kernel, each in found.items()}))


def kernel_of(request: Mapping[str, object]) -> str:
    """What the screen calls the kernel of a job: a name, or an absolute path; empty when the request has none."""
    params, cwd = request.get("params"), request.get("cwd")
    kernel = params.get("kernel") if isinstance(params, Mapping) else None
    if not isinstance(kernel, str) or not (kernel.endswith(".py") or "/" in kernel):
        return kernel if isinstance(kernel, str) else ""
    return os.path.normpath(os.path.join(cwd if isinstance(cwd, str) else "", expand(kernel)))


def _trial(row: JobRow, kernel: str) -> Trial:
    outdated = False
    if "/" in kernel:
        try:
            outdated = os.stat(kernel).st_mtime > row.created
        except (OSError, ValueError):
            outdated = True  # what was tried is not there any more
    what = WHAT[row.action]
    told = partial(Trial, what=what, job=row.short_id, outdated=outdated)
    if row.state is State.FINISHED:
        wrong = what == "check" and not ALL_RIGHT.fullmatch(row.headline)
        return told(text=row.headline or str(row.state), state="error" if wrong else "")
    if row.state in (State.FAILED, State.DIED):
        return told(text=row.note or str(row.state), state="error")
    return told(text=str(row.state), state="unknown" if row.state is State.CANCELLED else "muted")
