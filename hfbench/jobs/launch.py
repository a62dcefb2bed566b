"""Starts a worker that outlives whoever started it, or a keeper that stands in for one elsewhere."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import hfbench
from hfbench.beside import ALONE, foreign_environment, python_path
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.directory import GRACE, JobDirectory, create, naming_the_folder, take_lock
from hfbench.jobs.events import Failed
from hfbench.jobs.executors.base import FOUND_BY, Need, Placement, placement_of
from hfbench.jobs.executors.known import executor_of
from hfbench.jobs.executors.spec import Where, parse_on
from hfbench.jobs.tail import has_final_event
from hfbench.jobs.writer import write_final

WORKER = "hfbench.worker"
KEEPER = (sys.executable, "-u", "-P", ALONE, "hfbench.jobs.executors.keeper")
KEEPER_LOG = "keeper.log"
"""What a keeper and the programs it calls print, in the folder of the first job of its batch."""
ADOPTED = 5.0
"""Seconds in which a job that was adopted is not adopted again."""
Batch: TypeAlias = list[tuple[JobDirectory, int]]
"""Jobs that one keeper takes, each with the descriptor that holds its lock."""
Start: TypeAlias = Callable[[JobDirectory, int], None]
"""Starts the worker of a job that is handed over with the descriptor of its lock."""

_adopted: dict[str, float] = {}


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
    on: str = ""
    """Where it runs, as `--on` takes it; empty for a process of this machine."""
    gpus: int = 0
    """GPUs to ask an executor for; a process of this machine sees them all."""


def launch(root: Path, request: JobRequest, start: Start | None = None) -> JobDirectory:
    """Create the job directory and start its worker detached; JobsFolderError or MissingError when that fails.

    The lock is handed to the worker as an open descriptor: from its first moment on, a job whose lock is
    free is a job whose worker is gone. A job for elsewhere has a keeper in the place of its worker.
    `start` takes the place of a new process for a job of this machine.
    """
    if request.on and not (where := parse_on(request.on)).is_local:
        return _launch_kept(root, [request], where)[0]
    job, lock = create(root, request.action, _asked(request))
    try:
        if start is not None:
            start(job, lock)
        else:
            reap(start_worker(job, lock, request.command), job.id)
    except HfbenchError as error:
        write_final(job, Failed(error=error.parts()))
        raise
    finally:
        os.close(lock)
    return job


def launch_many(root: Path, requests: Sequence[JobRequest]) -> tuple[JobDirectory, ...]:
    """Launch jobs that run at one place, in their order; an executor gets them as one batch, such as a Slurm array.

    UsageError when their places differ, or when one of them can never run there: then none is launched.
    """
    if len(places := {request.on for request in requests}) > 1:
        raise UsageError(f"one batch was to run on {' and '.join(sorted(places))}", remedy="launch a batch for each")
    if not requests or (where := parse_on(requests[0].on)).is_local:
        return tuple(launch(root, request) for request in requests)
    return _launch_kept(root, requests, where)


def adopt(jobs: Iterable[JobDirectory]) -> int:
    """Start new keepers for jobs elsewhere whose keepers are gone, so that their story goes on; how many jobs.

    A job is not adopted twice within some seconds, so that a keeper that cannot live is not started without end.
    """
    batches: dict[str, Batch] = {}
    for job in jobs:
        if (placement := placement_of(job)) is None or time.monotonic() < _adopted.get(job.id, 0.0):
            continue
        with contextlib.suppress(OSError):
            if (lock := take_lock(job.lock)) is None:
                continue
            if has_final_event(job):
                os.close(lock)
                continue
            _adopted[job.id] = time.monotonic() + ADOPTED
            batches.setdefault(placement.token, []).append((job, lock))
    for batch in batches.values():
        with contextlib.suppress(MissingError):  # its jobs go on all the same
            _keep(batch)
        for _, lock in batch:
            os.close(lock)
    return sum(map(len, batches.values()))


def _launch_kept(root: Path, requests: Sequence[JobRequest], where: Where) -> tuple[JobDirectory, ...]:
    """Make the folders of jobs for elsewhere and start their keepers, one for as many as the executor takes at once."""
    _current_folder()  # asked before anything else stumbles over one that is gone
    executor = executor_of(where)
    needs = [Need(gpus=request.gpus, command=tuple(request.command)) for request in requests]
    executor.refuse(needs)
    variables = {name: os.environ[name] for name in FOUND_BY if name in os.environ}
    jobs: list[JobDirectory] = []
    for begin in range(0, len(requests), executor.batch):
        token, batch = f"hfbench-{secrets.token_hex(6)}", Batch()
        try:
            for index in range(begin, min(begin + executor.batch, len(requests))):
                lease = requests[index].lease and not executor.arbiter
                asked = {**_asked(requests[index]), "on": where.text, "lease": lease}
                job, lock = create(root, requests[index].action, asked)
                batch.append((job, lock))
                with naming_the_folder(root):
                    Placement(
                        where=where, token=token, index=index - begin, need=needs[index], variables=variables
                    ).write(job)
            _keep(batch)
        except HfbenchError as error:
            for job, _ in batch:
                write_final(job, Failed(error=error.parts()))
            raise
        finally:
            for _, lock in batch:
                os.close(lock)
        jobs += (job for job, _ in batch)
    return tuple(jobs)


def _keep(batch: Batch) -> None:
    """Start the keeper of jobs whose locks are held here: it inherits them. MissingError when it cannot be started."""
    first = batch[0][0]
    locks = [lock for _, lock in batch]
    try:
        with open(first.path / KEEPER_LOG, "ab") as log:
            process = subprocess.Popen(
                [*KEEPER, *(str(job.path) for job, _ in batch), "--lock-fds", ",".join(map(str, locks))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=locks,
                env=worker_environment(foreign=False),
            )
    except OSError as error:
        raise MissingError(f"the keeper cannot be started: {error.strerror}", where=sys.executable) from error
    reap(process, first.id)


def reap(process: subprocess.Popen[bytes], name: str) -> None:
    """Somebody has to collect the exit status, else a workbench that runs for days fills with zombies."""
    threading.Thread(target=process.wait, name=f"reaper of {name}", daemon=True).start()


def _asked(request: JobRequest) -> dict[str, Any]:
    """The content of request.json beside what every one has."""
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
    return asked


def start_worker(job: JobDirectory, lock: int, command: Sequence[str] = ()) -> subprocess.Popen[bytes]:
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
            env=worker_environment(foreign=bool(command)),
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


def worker_environment(*, foreign: bool) -> dict[str, str]:
    """The worker and its children find this hfbench wherever it is installed; another Python, nothing else of ours."""
    if foreign:
        return {**foreign_environment(), "PYTHONPATH": ALONE, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
