"""What jobs tell of a hub: the latest check and the latest collection of its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.state import State
from hfbench.paths import expand, jobs_root, registry_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest
from hfbench.screens.registry_asks import Post
from hfbench.widgets.registry_lines import Upkeep

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.jobs.history import JobRow

FSCK, GC, STATS = "registry.fsck", "registry.gc", "registry.stats"
CHANGING = (FSCK, GC, "registry.import", "registry.backup")
MOST = 200


@dataclass
class RegistryJobsRead(Latest):
    """The latest job of each action on the hub."""

    upkeep: Mapping[str, Upkeep] = field(default_factory=dict)


class RegistryJobs:
    """Reads when a job of these actions began or ended, and tells the screen by `RegistryJobsRead`."""

    def __init__(self, screen: MessagePump) -> None:
        self._reading = Background(screen, lambda error: RegistryJobsRead())
        self._seen: object = None

    def look(self, jobs: Sequence[JobRow], folder: str) -> None:
        """Read anew where these jobs, newest first, or the hub are others than before; the first time always."""
        rows = tuple(islice((row for row in jobs if row.action in CHANGING), MOST))
        seen = (folder, tuple((row.id, row.state) for row in rows))
        if seen != self._seen:
            self._seen = seen
            self._reading.start(partial(read_jobs, rows, folder))

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()


def read_jobs(rows: Sequence[JobRow], folder: str, stopped: Stopped, post: Post) -> None:
    """Post the latest of these jobs of each action, newest first, that were about the hub in a folder."""
    upkeep: dict[str, Upkeep] = {}
    for row in rows:
        if stopped():
            return
        if row.action not in upkeep and folder_of(JobDirectory(jobs_root() / row.id)) == folder:
            upkeep[row.action] = _upkeep(row)
    post(RegistryJobsRead(upkeep))


def folder_of(job: JobDirectory) -> str:
    """The hub's folder that a job's request names, absolute; this user's own where it names none."""
    params, cwd = job.request.get("params"), job.request.get("cwd")
    told = params.get("folder") if isinstance(params, Mapping) else None
    if not isinstance(told, str) or not told:
        return str(registry_root().absolute())
    return str((Path(cwd if isinstance(cwd, str) else "/") / expand(told)).absolute())


def _upkeep(row: JobRow) -> Upkeep:
    at = row.ended or row.started or row.created
    if not row.state.over:
        return Upkeep(job=row.short_id, text=str(row.state), at=at, fine=None)
    if row.state is State.FINISHED:
        damaged = row.action == FSCK and not row.headline.startswith("clean")
        return Upkeep(job=row.short_id, text=row.headline, at=at, fine=not damaged)
    return Upkeep(job=row.short_id, text=row.note or str(row.state), at=at, fine=False)
