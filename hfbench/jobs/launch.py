"""Starts a worker that outlives whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hfbench
from hfbench.errors import MissingError
from hfbench.jobs.directory import JobDirectory, create, naming_the_folder, take_lock

WORKER = "hfbench.worker"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job is asked to do. `command` is the interpreter, with its prefix, that runs the worker."""

    action: str
    params: Mapping[str, Any]
    lease: bool = True
    timeout: float | None = None
    """Seconds of running time, waiting for a device not counted."""
    command: Sequence[str] = ()
    label: str = ""


def launch(root: Path, request: JobRequest) -> JobDirectory:
    """Create the job directory and start its worker detached; JobsFolderError or MissingError when that fails.

    The lock is taken here and handed to the worker as an open descriptor: from its first moment on,
    a job whose lock is free is a job whose worker is gone.
    """
    job = create(
        root,
        request.action,
        {
            "hfbench": hfbench.__version__,
            "params": dict(request.params),
            "lease": request.lease,
            "timeout": request.timeout,
            "label": request.label,
            "cwd": os.getcwd(),
        },
    )
    command = [*(request.command or (sys.executable,)), "-m", WORKER, str(job.path)]
    with naming_the_folder(root):
        lock = take_lock(job.lock)
        log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    assert lock is not None, "a new directory's lock is free"
    try:
        subprocess.Popen(
            [*command, "--lock-fd", str(lock)],
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
        os.close(lock)
    return job


def _environment() -> dict[str, str]:
    """The worker finds this hfbench even when it is a checkout that is not installed where it runs."""
    source = str(Path(hfbench.__file__).parents[1])
    known = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(known)), "PYTHONUNBUFFERED": "1"}
