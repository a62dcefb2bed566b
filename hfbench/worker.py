"""Performs the request of one job directory: `python -m hfbench.worker DIR`."""

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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hfbench.actions.base import Action, Spec
from hfbench.actions.registry import find
from hfbench.codec import encode
from hfbench.errors import HfbenchError
from hfbench.exits import Exit, complain
from hfbench.jobs.directory import JobDirectory, take_lock
from hfbench.jobs.events import Failed, Finished, Queued, Running, Started
from hfbench.jobs.fingerprint import fingerprint
from hfbench.jobs.leases import hold
from hfbench.jobs.process import start_ticks
from hfbench.jobs.run import Run
from hfbench.jobs.supervise import supervise
from hfbench.jobs.writer import EventWriter
from hfbench.paths import leases_root


class UnforeseenError(HfbenchError):
    """A fault of hfbench or of a library it called; the traceback is in the job's events."""


def main(arguments: list[str] | None = None) -> int:
    """Run the worker of one job; the exit status is the job's, for executors that look at it."""
    parser = argparse.ArgumentParser(prog="hfbench.worker", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--lock-fd", type=int, help="an open descriptor that already holds the job's lock")
    given = parser.parse_args(arguments)
    job = JobDirectory(given.directory)
    lock = given.lock_fd if given.lock_fd is not None else take_lock(job.lock)
    if lock is None:
        complain(f"{job.id}: another worker runs this job")
        return Exit.USAGE
    os.set_inheritable(lock, False)
    writer = EventWriter(job)
    writer(Started(pid=os.getpid(), ticks=start_ticks(os.getpid()), host=socket.gethostname()))
    clock = Clock(job)
    return supervise(job, lambda: perform(job, EventWriter(job), clock), timeout=clock.limit)


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
        spec, request = _understand(job)
        with _device(job, spec, request, emit) as device:
            emit(Running(device=device))
            clock.start()
            began = time.monotonic()
            result = request.perform(run)
            seconds = time.monotonic() - began
        job.write("result.json", {"action": spec.name, "seconds": seconds, "result": _result_data(result)})
        emit(Finished(seconds=seconds))
    except HfbenchError as error:
        emit(Failed(error=error.parts()))
        return int(error.exit)
    except Exception as error:
        traceback.print_exc()
        emit(Failed(error=_foreseen(error).parts(), traceback=traceback.format_exc()))
        return Exit.FAILED
    finally:
        emit.close()
    return Exit.OK


def _understand(job: JobDirectory) -> tuple[Spec, Action]:
    spec = find(str(job.request.get("action")))
    request = spec.build(job.request.get("params") or {})
    job.write("environment.json", fingerprint())
    spec.require()
    return spec, request


@contextmanager
def _device(job: JobDirectory, spec: Spec, request: Action, emit: EventWriter) -> Iterator[str]:
    """Hold the device the request names, telling for whom it waits; an empty name when it needs none."""
    if spec.lease is None:
        yield ""
        return
    from hfbench.gpu.devices import lease_key

    device = lease_key(str(getattr(request, spec.lease)))
    if not job.request.get("lease", True):
        yield device
        return
    with hold(leases_root(), device, job.id, lambda who: emit(Queued(device=device, waits_for=who))):
        yield device


def _result_data(result: object) -> dict[str, Any]:
    """The result as JSON, with what its class derives for lists and people: a headline and a verdict of failure."""
    data: dict[str, Any] = encode(result) or {}
    for derived in ("headline", "failed"):
        if derived not in data and (value := getattr(result, derived, None)) is not None:
            data[derived] = value
    return data


def _foreseen(error: Exception) -> HfbenchError:
    """A sentence for an error nobody raised on purpose."""
    if isinstance(error, MemoryError):
        return HfbenchError("out of host memory", remedy="use a smaller batch, a smaller dtype or another machine")
    if type(error).__name__ == "OutOfMemoryError":
        return HfbenchError(
            f"out of device memory: {str(error).splitlines()[0]}", remedy="use a smaller batch or dtype"
        )
    if isinstance(error, OSError):
        return HfbenchError(f"{error.strerror or error}", where=error.filename or "")
    first = (str(error).strip() or "no message").splitlines()[0]
    return UnforeseenError(f"{type(error).__name__}: {first}", remedy="the job's events hold the traceback")


if __name__ == "__main__":
    sys.exit(main())
