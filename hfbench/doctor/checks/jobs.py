"""The folders of hfbench itself: jobs that are whole, locks that can be taken, a configuration that is right."""

from __future__ import annotations

import json
import os

from hfbench.config import examine
from hfbench.doctor.check import Outcome, check, error, ok, saw, some, warning
from hfbench.doctor.system import System
from hfbench.jobs.directory import ID
from hfbench.models.problem import counted

HALF = ".new-"
OLD = 3600.0
"""Seconds after which a job that is still being made has been given up."""


@check("jobs.whole", "jobs folder", limit=15.0)
def whole(system: System) -> Outcome:
    """A job whose request is lost cannot be shown or run again."""
    if not system.exists(system.jobs):
        return ok("there is no job yet", saw("absent", system.jobs))
    if not system.at(system.jobs).is_dir():
        return error("is no folder", saw("a file", system.jobs), remedy="move it away, or set HFBENCH_HOME")
    if not os.access(system.at(system.jobs), os.R_OK | os.X_OK):
        return error(
            "cannot be read", saw("no permission", system.jobs), remedy="mend its permissions, or set HFBENCH_HOME"
        )
    names = system.names(system.jobs)
    jobs = [name for name in names if ID.fullmatch(name)]
    damaged = [name for name in jobs if not _has_request(system, name)]
    halves = [name for name in names if name.startswith(HALF) and _age(system, name) > OLD]
    seen = [saw(counted(len(jobs), "job"), system.jobs)]
    seen += [saw("no request.json that can be read", system.jobs / name) for name in damaged[:4]]
    seen += [saw("was never finished", system.jobs / name) for name in halves[:4]]
    if damaged:
        return error(
            f"{len(damaged)} of {len(jobs)} damaged: {some(each.rpartition('-')[2] for each in damaged)}",
            *seen,
            remedy="look whether the disk was full or failed, save what you need, and remove their folders",
        )
    if halves:
        return warning(
            f"{counted(len(halves), 'job')} never finished being made", *seen, remedy=f"remove the folders {HALF}*"
        )
    return ok(f"{counted(len(jobs), 'job')}, all whole", *seen)


@check("jobs.leases", "device locks")
def leases(system: System) -> Outcome:
    """A lock that cannot be opened blocks every measurement on its device."""
    if not system.exists(system.leases):
        return ok("none was ever taken", saw("absent", system.leases))
    if not os.access(system.at(system.leases), os.W_OK | os.X_OK):
        return error(
            "the folder cannot be written",
            saw("no permission", system.leases),
            remedy=f"sudo chmod 1777 {system.leases}, or set HFBENCH_HOME for locks of your own",
        )
    files = [name for name in system.names(system.leases) if not name.startswith(".")]
    closed = [name for name in files if not os.access(system.at(system.leases / name), os.R_OK)]
    mount = system.mount(system.leases)
    seen = [
        saw(f"{counted(len(files), 'lock')}, on {mount.kind if mount else 'a disk of unknown kind'}", system.leases)
    ]
    if closed:
        return error(f"{some(closed)} cannot be opened", *seen, remedy="ask its owner to make it readable for all")
    if mount and mount.network:
        return warning(
            "on a network disk", *seen, remedy="its locks may bind one machine only: keep it on a disk of this one"
        )
    return ok(f"{len(files)} can be taken", *seen)


@check("jobs.config", "configuration")
def config(system: System) -> Outcome:
    """What is wrong in config.toml is passed over, and a default taken."""
    if not system.exists(system.config):
        return ok("none, defaults hold", saw("absent", system.config))
    _, problems = examine(system.at(system.config))
    if problems:
        return error(
            f"{counted(len(problems), 'problem')}: {problems[0].found}",
            *(saw(each.found, system.config) for each in problems),
            remedy=problems[0].remedy or "hfbench config check tells them all",
        )
    return ok("is right", saw("no problem", system.config))


def _has_request(system: System, name: str) -> bool:
    try:
        return isinstance(json.loads(system.text(system.jobs / name / "request.json") or ""), dict)
    except (ValueError, RecursionError):
        return False


def _age(system: System, name: str) -> float:
    try:
        return system.now() - system.at(system.jobs / name).lstat().st_mtime
    except OSError:
        return 0.0
