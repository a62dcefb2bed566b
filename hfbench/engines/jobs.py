"""Which engines jobs are about: where builds put theirs, and which one a trial load was of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.history import History, JobRow
from hfbench.jobs.state import State
from hfbench.paths import expand, jobs_root

BUILD, CHECK = "engine.build", "engine.check"
NAMES = {BUILD: "out", CHECK: "engine"}
"""Actions, and the parameter that names the engine's folder."""
MOST = 200
"""Jobs that are looked at, the newest."""


def about_engines(rows: Iterable[JobRow]) -> list[JobRow]:
    """The newest jobs of these actions; `rows` are newest first."""
    return list(islice((row for row in rows if row.action in NAMES), MOST))


def built_by_jobs() -> list[Path]:
    """Folders of finished builds that are still there."""
    root = jobs_root()
    if not root.is_dir():
        return []
    history = History(root)
    try:
        rows = [row for row in about_engines(history.rows()) if row.action == BUILD and row.state is State.FINISHED]
    finally:
        history.close()
    told = (folder_of(JobDirectory(root / row.id).request, NAMES[BUILD]) for row in rows)
    return [Path(each) for each in dict.fromkeys(told) if each and os.path.isdir(each)]


def folder_of(request: Mapping[str, object], name: str) -> str:
    """The absolute path that a request gives; empty when it gives none."""
    params, cwd = request.get("params"), request.get("cwd")
    path = params.get(name) if isinstance(params, Mapping) else None
    if not isinstance(path, str) or not path:
        return ""
    return os.path.normpath(os.path.join(cwd if isinstance(cwd, str) else "", expand(path)))
