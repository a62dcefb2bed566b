"""Performs the request of one job directory: `python -m hfbench.worker DIR`; `--warm` does so for many."""

from __future__ import annotations

import argparse
import mmap
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from hfbench.actions.base import Action, Spec
from hfbench.actions.registry import catalogue, find
from hfbench.actions.results import result_data
from hfbench.errors import FULL, HfbenchError, UsageError, foreseen
from hfbench.exits import Exit, complain
from hfbench.jobs.directory import KEPT_LOCK, RESERVE_BYTES, JobDirectory, naming_the_folder, take_lock
from hfbench.jobs.events import Failed, Finished, Queued, Requeued, Running, Started
from hfbench.jobs.fingerprint import fingerprint
from hfbench.jobs.leases import hold
from hfbench.jobs.process import start_ticks
from hfbench.jobs.run import Run
from hfbench.jobs.supervise import supervise
from hfbench.jobs.tail import has_final_event, read_events
from hfbench.jobs.warm import serve
from hfbench.jobs.writer import DiskFull, EventWriter, write_final
from hfbench.paths import leases_root

TRACEBACK_BYTES = 8000
"""Kept of a traceback: with the rest of the event it fits into the job's reserve on a full disk."""


def main(arguments: list[str] | None = None) -> int:
    """Run the worker of one job; the exit status is the job's, for executors that look at it."""
    parser = argparse.ArgumentParser(prog="hfbench.worker", description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--lock-fd", type=int, help="an open descriptor that already holds the job's lock")
    parser.add_argument("--kept", action="store_true", help="a keeper on another machine holds the job's lock")
    parser.add_argument(
        "--attempt", type=int, default=0, metavar="N", help="of a kept job: how often it was begun again"
    )
    parser.add_argument(
        "--warm", type=int, metavar="FD", help="import modules and fork a worker for each job told here"
    )
    parser.add_argument("--import", dest="modules", nargs="*", default=[], metavar="MODULE", help="what to import")
    given = parser.parse_args(arguments)
    if given.warm is not None:
        _serve(given.warm, given.modules)
    if given.directory is None:
        parser.error("give a job's folder")
    job = JobDirectory(given.directory)
    try:
        if given.kept:
            lock: int | None = _beside_keeper(job, given.attempt)
        else:
            lock = _lock(job) if given.lock_fd is None else _inherited(given.lock_fd, job)
    except HfbenchError as error:
        complain(error)
        return int(error.exit)
    if given.kept and not _begins_again(job, given.attempt):
        return Exit.OK  # the attempt that was given up came to its end after all
    return _run(job, lock, kept=given.kept)


def _serve(channel: int, modules: list[str]) -> NoReturn:
    """Fork workers that find the modules imported. What reads models imports no hub library that may reach out."""
    if "transformers" in modules:
        from hfbench.gpu.generate_model import stay_offline

        stay_offline()
    catalogue()  # each worker would read the declarations of actions anew
    serve(channel, modules, _run)


def _run(job: JobDirectory, lock: int | None, *, kept: bool = False) -> int:
    """Do the job under supervision; its exit status."""
    if lock is not None:
        os.set_inheritable(lock, False)
    try:
        with EventWriter(job) as emit:
            emit(Started(pid=os.getpid(), ticks=start_ticks(os.getpid()), host=socket.gethostname()))
    except DiskFull as error:
        write_final(job, Failed(error=error.parts()))
        return int(error.exit)
    clock = Clock(job)
    return supervise(job, lambda: perform(job, EventWriter(job), clock), timeout=clock.limit, lock=lock, kept=kept)


def _lock(job: JobDirectory) -> int:
    """The lock of a job that was not launched from here; UsageError when there is nothing to do in the folder."""
    if not job.request:
        raise UsageError("there is no request of a job in it", where=job.path, remedy="give a job's folder")
    with naming_the_folder(job.path):
        lock = take_lock(job.lock, patience=1.0)
    if lock is None:
        raise UsageError("another worker runs this job", where=job.id)
    if has_final_event(job):
        os.close(lock)
        raise UsageError("this job is over", where=job.id, remedy="launch it again as a new job")
    return lock


def _beside_keeper(job: JobDirectory, attempt: int) -> int:
    """The lock of a kept worker. While an earlier attempt runs on, which its executor gave up, this one waits."""
    if not job.request:
        raise UsageError("there is no request of a job in it", where=job.path, remedy="give a job's folder")
    with naming_the_folder(job.path):
        while (lock := take_lock(job.path / KEPT_LOCK)) is None:
            time.sleep(1)
        os.pwrite(lock, f"{attempt}\n".encode(), 0)
    return lock


def _begins_again(job: JobDirectory, attempt: int) -> bool:
    """Whether there is work left for this attempt. That earlier ones are void is told, unless the keeper did so."""
    events = read_events(job)
    if any(event.final for event in events):
        return False
    told = max((event.attempt for event in events if isinstance(event, Requeued)), default=0)
    if attempt > told:
        with EventWriter(job) as emit:
            emit(Requeued(reason="its executor begins it again", attempt=attempt))
    return True


def _inherited(fd: int, job: JobDirectory) -> int | None:
    """The descriptor of the lock; None behind a container or srun, whose own process holds it until this one ends."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(fd), os.stat(job.lock)):
            return fd
    with suppress(OSError, TypeError):  # a container begins in a folder of its own
        os.chdir(job.request["cwd"])
    return None


class Clock:
    """Tells the supervisor when the time of a job is over; it counts from the moment the action begins."""

    def __init__(self, job: JobDirectory) -> None:
        self.seconds: float | None = job.request.get("timeout")
        self._began = mmap.mmap(-1, struct.calcsize("d"))  # shared with the working process across the fork

    def start(self) -> None:
        """Called by the working process when the action begins."""
        self._began[:] = struct.pack("d", time.monotonic())

    def limit(self) -> float | None:
        """The moment (time.monotonic) at which the job must be over; None while there is none."""
        (began,) = struct.unpack("d", self._began[:])
        return began + self.seconds if self.seconds is not None and began else None


def perform(job: JobDirectory, emit: EventWriter, clock: Clock) -> int:
    """Do what the request asks and write the result and the last event; the exit status of the job.

    A request to stop passes through: the supervisor knows whether it came from a person or from the clock.
    """
    run = Run(emit, job.path)
    try:
        if why := job.environment("why"):
            run.log(why)
        spec, request = _understand(job)
        with _device(job, spec, request, emit) as device:
            emit(Running(device=device))
            clock.start()
            began = time.monotonic()
            with _memory_watched(run, spec, request, device):
                result = request.perform(run)
            seconds = time.monotonic() - began
        job.write("result.json", {"action": spec.name, "seconds": seconds, "result": result_data(result)})
        emit(Finished(seconds=seconds))
    except HfbenchError as error:
        emit(Failed(error=error.parts()))
        return int(error.exit)
    except Exception as error:
        told = traceback.format_exc()[-TRACEBACK_BYTES:]
        with suppress(OSError):  # the log may be on the disk that is full
            sys.stderr.write(told)
        emit(Failed(error=_with_place(error, job).parts(), traceback=told))
        return Exit.FAILED
    finally:
        emit.close()
    return Exit.OK


def _understand(job: JobDirectory) -> tuple[Spec, Action]:
    spec = find(str(job.request.get("action")))
    request = spec.build(job.request.get("params") or {})
    job.write("environment.json", fingerprint())
    spec.needing(spec.values(request)).require()
    return spec, request


@contextmanager
def _device(job: JobDirectory, spec: Spec, request: Action, emit: EventWriter) -> Iterator[str]:
    """Hold the device the request names, telling for whom it waits; an empty name when it needs none."""
    if spec.lease is None:
        yield ""
        return
    from hfbench.gpu.devices import settle_device

    device = settle_device(str(getattr(request, spec.lease)), needs_gpu=spec.needs_gpu).lease
    if not job.request.get("lease", True):
        yield device
        return
    with hold(leases_root(), device, job.id, lambda who: emit(Queued(device=device, waits_for=who))):
        yield device


@contextmanager
def _memory_watched(run: Run, spec: Spec, request: Action, device: str) -> Iterator[None]:
    """Where the action has a GPU: allocator metrics while it runs, and the cause when device memory runs out."""
    if spec.lease is None or device == "cpu":
        yield
        return
    from hfbench.gpu.devices import parse_device
    from hfbench.gpu.explain.witness import watching_memory

    index = parse_device(str(getattr(request, spec.lease)))
    with watching_memory(run, index or 0, device):
        yield


def _with_place(error: Exception, job: JobDirectory) -> HfbenchError:
    """The error as a sentence; a full disk without a name is the job's own when that has no room left."""
    if isinstance(error, OSError) and error.errno in FULL and not error.filename:
        room = os.statvfs(job.path)
        if room.f_bavail * room.f_frsize < RESERVE_BYTES:
            return DiskFull("the disk is full", where=job.path, remedy=DiskFull.REMEDY)
    return foreseen(error, traceback=f"hfbench jobs logs {job.short_id} shows the traceback")


if __name__ == "__main__":
    sys.exit(main())
