"""Starts a worker that outlives whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hfbench
from hfbench.beside import ALONE, foreign_environment, python_path
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.directory import GRACE, JobDirectory, create, naming_the_folder
from hfbench.jobs.events import Failed
from hfbench.jobs.writer import write_final

WORKER = "hfbench.worker"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job is asked to do."""

    action: str
    params: Mapping[str, Any]
    lease: bool = True
    timeout: float | None = None
    """Seconds of running time, waiting for a device not counted."""
    grace: float = GRACE
    """Seconds between asking the job to stop and killing it."""
    label: str = ""
    command: Sequence[str] = ()
    """The interpreter, with its prefix, that runs the worker; empty for this one."""
    environment: str = ""
    """The name of what `command` starts."""
    why: str = ""
    """Why it was chosen when nobody asked for it."""


def launch(root: Path, request: JobRequest) -> JobDirectory:
    """Create the job directory and start its worker detached; JobsFolderError or MissingError when that fails.

    The lock is handed to the worker as an open descriptor: from its first moment on, a job whose lock is
    free is a job whose worker is gone.
    """
    asked = {
        "hfbench": hfbench.__version__,
        "params": dict(request.params),
        "lease": request.lease,
        "timeout": request.timeout,
        "grace": request.grace,
        "label": request.label,
        "cwd": _current_folder(),
    }
    if request.command:
        asked["environment"] = {"name": request.environment, "command": list(request.command), "why": request.why}
    job, lock = create(root, request.action, asked)
    try:
        process = _start(job, lock, request.command)
    except HfbenchError as error:
        write_final(job, Failed(error=error.parts()))
        raise
    finally:
        os.close(lock)
    # Somebody has to collect the exit status, else a workbench that runs for days fills with zombies.
    threading.Thread(target=process.wait, name=f"reaper of {job.id}", daemon=True).start()
    return job


def _start(job: JobDirectory, lock: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The worker's process. Its module and job are words, not variables: those do not reach into a container."""
    with naming_the_folder(job.path.parent):
        log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        return subprocess.Popen(
            # -P: a torch.py in the user's folder is not the torch that is meant
            [*(command or [sys.executable]), "-u", "-P", ALONE, WORKER, str(job.path), "--lock-fd", str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
            env=_environment(foreign=bool(command)),
        )
    except OSError as error:
        raise MissingError(
            f"the worker's interpreter cannot be started: {error.strerror}",
            where=command[0] if command else sys.executable,
            remedy="check the environment's python",
        ) from error
    finally:
        os.close(log)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageError("the current folder is gone", remedy="change to a folder that exists") from error


def _environment(*, foreign: bool) -> dict[str, str]:
    """The worker and its children find this hfbench wherever it is installed; another Python, nothing else of ours."""
    if foreign:
        return {**foreign_environment(), "PYTHONPATH": ALONE, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
