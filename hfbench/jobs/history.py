"""An index over job directories, so that ten thousand jobs can be listed at once. Never the truth itself."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.snapshot import JobSnapshot, State, read_job
from hfbench.side_table import discard, open_table, table_in_memory

SCHEMA = 5
COLUMNS = "id, action, label, model, device, state, created, started, ended, headline, note"
TABLE = f"CREATE TABLE IF NOT EXISTS jobs ({COLUMNS.replace('id,', 'id TEXT PRIMARY KEY,', 1)}) WITHOUT ROWID"
ON_HUBS = ("hub.open", "pull")
"""Actions whose model is a repository of a hub, whatever lies here."""

PROBE = "SELECT COUNT(*) FROM jobs WHERE id > ''"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRow:
    """One line of the list of jobs."""

    id: str
    action: str
    label: str
    model: str
    """The model the job is about, or the kernel; of a push the folder that is sent."""
    device: str
    state: State
    created: float
    started: float | None
    ended: float | None
    headline: str
    note: str
    """What a job that ended badly found, or what a queued one waits for."""

    @property
    def short_id(self) -> str:
        """What a person types to name the job."""
        return self.id.rpartition("-")[2]

    def seconds(self, now: float) -> float:
        """Running time, up to now while it runs."""
        return max(0.0, (self.ended or now) - (self.started or self.created))


SETTLED_NS = 2_000_000_000
"""Age at which the time of a folder's last change is believed: clocks and disks are coarser than changes."""


class History:
    """The index of one jobs folder. It lives beside the jobs; where it cannot be written it lives in memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._seen = 0
        """When the folder was changed last, as of the last look; 0 when it must be looked at again."""
        self._live: list[str] = []
        """Jobs that were not over at the last look."""
        self._rows: list[JobRow] | None = None
        """All jobs as they were told last; None since something changed."""
        self._db = open_table(self.file, TABLE, SCHEMA, PROBE)

    def rows(self, most: int | None = None) -> list[JobRow]:
        """All jobs, newest first, brought up to date with what the directories say."""
        self.refresh()
        if self._rows is not None:
            return self._rows[: most or None]
        query = f"SELECT {COLUMNS} FROM jobs ORDER BY created DESC, id DESC" + (f" LIMIT {int(most)}" if most else "")
        rows = [_row(values) for values in self._db.execute(query)]
        self._rows = None if most else rows
        return rows

    def refresh(self) -> None:
        """Read new and unfinished jobs again and forget those whose folder is gone."""
        try:
            self._refresh()
        except (sqlite3.Error, ValueError) as trouble:
            self._db.close()
            if not isinstance(trouble, sqlite3.OperationalError):
                discard(self.file)  # damaged since it was opened: whoever opens it next makes it again
            # Full, read-only, or just thrown away: go on without a file.
            self._db = table_in_memory(TABLE, SCHEMA, PROBE)
            self._seen = 0
            self._refresh()

    def reindex(self) -> int:
        """Forget everything and read all directories again; the number of jobs found."""
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.execute("DELETE FROM jobs")
        self._seen, self._rows = 0, None
        self.refresh()
        return int(self._db.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @property
    def file(self) -> Path:
        """The index file; it may be deleted at any time."""
        return self.root / ".index.sqlite"

    def _refresh(self) -> None:
        changed = self._last_change()
        if not self._live and changed and changed == self._seen:
            return  # no job came, went, or was under way
        self._seen = changed
        present = set(job_ids(self.root))
        known = {str(i): State(s) for i, s in self._db.execute("SELECT id, state FROM jobs")}
        stale = [i for i in present if i not in known or not known[i].over]
        if not stale and len(known) == len(present):
            self._live = []
            return
        self._rows = None
        rows = [_values(read_job(JobDirectory(self.root / i))) for i in stale]
        self._live = [values[0] for values in rows if not State(values[5]).over]
        with self._db:
            self._db.executemany("DELETE FROM jobs WHERE id = ?", [(i,) for i in known.keys() - present])
            self._db.executemany(f"INSERT OR REPLACE INTO jobs ({COLUMNS}) VALUES ({', '.join('?' * 11)})", rows)

    def _last_change(self) -> int:
        """When a job came or went last, in nanoseconds; 0 when that is too short ago to tell two changes apart."""
        try:
            changed = self.root.stat().st_mtime_ns
        except OSError:
            return 0
        return changed if time.time_ns() - changed > SETTLED_NS else 0


def _values(s: JobSnapshot) -> tuple[Any, ...]:
    values = (
        s.id,
        s.action,
        s.label,
        _about(s),
        s.device or str(s.params.get("device") or ""),
        str(s.state),
        s.created,
        s.started,
        s.ended,
        s.headline(),
        s.found() or s.trouble or _waits_for(s),
    )
    # A lone surrogate, which JSON can write, is no text to a database.
    return tuple(each.encode("utf-8", "replace").decode() if isinstance(each, str) else each for each in values)


def _about(s: JobSnapshot) -> str:
    """What the job is about. A push names where it goes as its model: what it is about is what it sends. A model that
    an option asks of another hub is told with it."""
    named = ("folder",) if s.action == "push" else ("model", "kernel")
    about = next((str(s.params[name]) for name in named if s.params.get(name)), "")
    endpoint = str(s.params.get("endpoint") or "") if s.action in ON_HUBS else ""
    if not endpoint or ":" in about:
        return about
    return f"{endpoint.rstrip('/')}/{about}" if "://" in endpoint else f"{endpoint}:{about}"


def _waits_for(s: JobSnapshot) -> str:
    """What a queued job waits for: the short id of another, or what an executor says."""
    if s.waits_elsewhere:
        return s.waits_for
    return f"waits for {s.waits_for.rpartition('-')[2]}" if s.waits_for else ""


def _row(values: tuple[Any, ...]) -> JobRow:
    names = [name.strip() for name in COLUMNS.split(",")]
    told = dict(zip(names, values, strict=True))
    return JobRow(**{**told, "state": State(told["state"])})
