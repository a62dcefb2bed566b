"""Job folders with fixed times, as if their jobs had run: what screens show can then be compared byte by byte."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfbench.jobs.directory import JobDirectory, take_lock
from hfbench.jobs.events import Event, to_line

NOW = 1_767_600_000.0
"""The clock of the pictures: seconds since the epoch."""


def make_job(
    root: Path,
    tail: str,
    action: str,
    params: dict[str, Any],
    events: Sequence[Event],
    *,
    age: float = 60.0,
    result: dict[str, Any] | None = None,
    log: str = "",
    label: str = "",
) -> JobDirectory:
    """A job folder whose request is `age` seconds old at NOW; the id ends in `tail`."""
    job = JobDirectory(root / f"2026-01-05T08-00-00-{action}-{tail}")
    job.path.mkdir(parents=True)
    request = {"v": 1, "action": action, "params": params, "created": NOW - age, "label": label}
    (job.path / "request.json").write_text(json.dumps(request))
    job.events.write_bytes(b"".join(map(to_line, events)))
    job.lock.touch()
    job.log.write_text(log)
    if result is not None:
        (job.path / "result.json").write_text(json.dumps({"action": action, "seconds": 1.0, "result": result}))
    return job


class Held:
    """Holds a job's lock, as its live worker would."""

    def __init__(self, job: JobDirectory) -> None:
        lock = take_lock(job.lock)
        assert lock is not None
        self._lock = lock

    def release(self) -> None:
        """Let go, as a worker that ends."""
        os.close(self._lock)
