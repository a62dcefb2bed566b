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
from hfbench.beside import python_path
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.directory import GRACE, JobDirectory, create, naming_the_folder
from hfbench.jobs.events import Failed
from hfbench.jobs.writer import write_final

WORKER = "hfbench.worker"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job is asked to do. `command` is the interpreter, with its prefix, that runs the worker."""

    action: str
    params: Mapping[str, Any]
    lease: bool = True
    timeout: float | None = None
    """Seconds of running time, waiting for a device not counted."""
    grace: float = GRACE
    """Seconds between asking the job to stop and killing it."""
    command: Sequence[str] = ()
    label: str = ""


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
    job, lock = create(root, request.action, asked)
    try:
        process = _start(job, lock, request.command or (sys.executable,))
    except HfbenchError as error:
        write_final(job, Failed(error=error.parts()))
        raise
    finally:
        os.close(lock)
    # Somebody has to collect the exit status, else a workbench that runs for days fills with zombies.
    threading.Thread(target=process.wait, name=f"reaper of {job.id}", daemon=True).start()
    return job


def _start(job: JobDirectory, lock: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
    with naming_the_folder(job.path.parent):
        log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        return subprocess.Popen(
            # -P: a torch.py in the user's folder is not the torch that is meant
            [*command, "-P", "-m", WORKER, str(job.path), "--lock-fd", str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
            env=_environment(),
        )
    except OSError as error:
        raise MissingError(
            f"the worker's interpreter cannot be started: {error.strerror}",
            where=command[0],
            remedy="check the environment's python",
        ) from error
    finally:
        os.close(log)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageError("the current folder is gone", remedy="change to a folder that exists") from error


def _environment() -> dict[str, str]:
    """The worker finds this hfbench even when it is a checkout that is not installed where it runs."""
    return {**os.environ, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
