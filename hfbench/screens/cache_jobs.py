"""What jobs tell of the cache: the latest that hashed every blob, and those that freed or pulled something."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from hfbench.codec import decode
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.state import State
from hfbench.paths import jobs_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.cache_asks import FREE, Post
from hfbench.screens.messages import Latest
from hfbench.widgets.cache_rows import Verified

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.jobs.history import JobRow

VERIFY, PULL = "cache", "pull"
MOST = 200
"""Jobs that are looked at, the newest."""


@dataclass
class CacheJobsRead(Latest):
    """Jobs that changed the cache or looked at it, newest first, and what the latest verification found."""

    rows: tuple[JobRow, ...] = ()
    verified: Verified | None = None


class CacheJobs:
    """Reads when a job of these actions began or ended, and tells the screen by `CacheJobsRead`."""

    def __init__(self, screen: MessagePump) -> None:
        self._reading = Background(screen, lambda error: CacheJobsRead())
        self._jobs: Sequence[JobRow] | None = None
        self._seen: tuple[tuple[str, State], ...] | None = None

    def look(self, jobs: Sequence[JobRow]) -> None:
        """Read anew where these jobs, newest first, are others than before; the first time always."""
        if jobs is self._jobs:
            return
        self._jobs = jobs
        rows = tuple(islice((row for row in jobs if row.action in (VERIFY, FREE, PULL)), MOST))
        seen = tuple((row.id, row.state) for row in rows)
        if seen != self._seen:
            self._seen = seen
            self._reading.start(partial(read_jobs, rows))

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()


def read_jobs(rows: Sequence[JobRow], stopped: Stopped, post: Post) -> None:
    """Post these jobs, newest first, with what the latest of them that hashed every blob found."""
    verified = None
    for row in rows:
        if stopped():
            return
        if row.action == VERIFY and row.state.over and (verified := verified_by(row)) is not None:
            break
    post(CacheJobsRead(tuple(rows), verified))


def verified_by(row: JobRow) -> Verified | None:
    """What a job found; None when it hashed nothing or left no result. A blob changed since then is not told."""
    told: Any = JobDirectory(jobs_root() / row.id).read("result.json")
    try:
        result = told["result"]
        if not isinstance(result["verified"], int):
            return None
        from hfbench.hub.caching.facts import Damaged

        damaged = [decode(Damaged, each) for each in result["damaged"]]
        ended = row.ended or row.created
        kept = tuple(each for each in damaged if _unchanged(each.path, ended))
        return Verified(folder=str(result["folder"]), blobs=result["verified"], ended=ended, damaged=kept)
    except (KeyError, TypeError, ValueError):
        return None


def _unchanged(path: str, since: float) -> bool:
    try:
        return os.stat(path).st_mtime <= since
    except OSError:
        return False
