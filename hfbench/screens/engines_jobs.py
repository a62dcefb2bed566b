"""What jobs tell of engines: where builds put them, and what the latest trial load of each came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from hfbench.engines.jobs import BUILD, NAMES, about_engines, folder_of
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.state import State
from hfbench.paths import jobs_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.engines_asks import Post
from hfbench.screens.messages import Latest
from hfbench.widgets.engine_rows import EngineJob
from hfbench.widgets.glyphs import State as GlyphState

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.jobs.history import JobRow


@dataclass
class EngineJobsRead(Latest):
    """The folders of finished builds by job, and the trial loads by engine."""

    builds: Mapping[str, str] = field(default_factory=dict)
    trials: Mapping[str, EngineJob] = field(default_factory=dict)


class EngineJobs:
    """Reads when a job of these actions began or ended, and tells the screen by `EngineJobsRead`."""

    def __init__(self, screen: MessagePump) -> None:
        self._reading = Background(
            screen, lambda error: EngineJobsRead()
        )  # engines in the roots are shown all the same
        self._jobs: Sequence[JobRow] | None = None
        self._seen: tuple[tuple[str, State], ...] | None = None

    def look(self, jobs: Sequence[JobRow]) -> None:
        """Read anew where these jobs, newest first, are others than before; the first time always."""
        if jobs is self._jobs:
            return
        self._jobs = jobs
        rows = tuple(about_engines(jobs))
        seen = tuple((row.id, row.state) for row in rows)
        if seen != self._seen:
            self._seen = seen
            self._reading.start(partial(read_jobs, rows))

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()


def read_jobs(rows: Sequence[JobRow], stopped: Stopped, post: Post) -> None:
    """Post what these jobs, newest first, tell; one whose request names no folder is left out."""
    builds: dict[str, str] = {}
    trials: dict[str, EngineJob] = {}
    for row in rows:
        if stopped():
            return
        if row.action == BUILD and row.state is not State.FINISHED:
            continue
        request = JobDirectory(jobs_root() / row.id).request
        path = folder_of(request, NAMES[row.action])
        if path and row.action == BUILD:
            builds[row.id] = path
        elif path and path not in trials and path not in builds.values() and _loads(request):
            trials[path] = _trial(row)  # one of before the latest build tells of another engine
    post(EngineJobsRead(builds, trials))


def _loads(request: Mapping[str, object]) -> bool:
    params = request.get("params")
    return isinstance(params, Mapping) and params.get("load") is True


def _trial(row: JobRow) -> EngineJob:
    at = row.ended if row.ended is not None else math.inf
    if row.state is State.FINISHED:
        fine = row.headline == "loads here"
        return EngineJob(job=row.short_id, text=row.headline or str(row.state), state="ok" if fine else "error", at=at)
    if row.state in (State.FAILED, State.DIED):
        return EngineJob(job=row.short_id, text=row.note or str(row.state), state="error", at=at)
    state: GlyphState = "unknown" if row.state is State.CANCELLED else "muted"
    return EngineJob(job=row.short_id, text=str(row.state), state=state, at=at)
