"""Stops a job for real: asks its process group, waits, kills, and makes sure the story has an end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import time

from hfbench.errors import UsageError
from hfbench.jobs.directory import JobDirectory, naming_the_folder, take_lock
from hfbench.jobs.events import Cancelled
from hfbench.jobs.follow import wait_until
from hfbench.jobs.launch import adopt
from hfbench.jobs.process import signal_group
from hfbench.jobs.snapshot import JobSnapshot, State, read_job
from hfbench.jobs.tail import has_final_event
from hfbench.jobs.writer import write_final

SLACK = 5.0
"""Seconds a supervisor is given beyond the grace time of its job, before it is killed itself."""
FAR_SLACK = 30.0
"""The same for a keeper, which hands the request on, waits for the grace, has the job killed, and waits again."""


class StillRunning(UsageError):
    """The job must end before this can be done."""


def request_cancel(job: JobDirectory) -> bool:
    """Ask a job to stop and return at once; False when it is over already, or no signal could be sent.

    The file is for a worker on another machine, or one that has not said its process id yet: it looks for it. Of a
    job at an executor the keeper hands the request on; where that is gone, another is started.
    """
    snapshot = read_job(job)
    if snapshot.state.over:
        return False
    with naming_the_folder(job.path.parent):
        job.write("cancel.json", {"at": time.time(), "by": f"pid {os.getpid()} on {socket.gethostname()}"})
    if snapshot.on:
        adopt([job])
        return True
    return _on_this_host(snapshot) and signal_group(snapshot.pid, snapshot.ticks, signal.SIGTERM)


def cancel(job: JobDirectory) -> JobSnapshot:
    """Stop a job and return how it ended; what does not stop in its grace time is killed.

    A job at an executor that does not answer is left to be cancelled when it does, and is returned as it stands.
    """
    request_cancel(job)
    if job.request.get("on"):
        return _with_an_end(job, _end_elsewhere(job))
    snapshot = wait_until(job, lambda s: s.state.over, timeout=job.grace + SLACK)
    if snapshot.state.over:
        return _with_an_end(job, snapshot)
    if _on_this_host(snapshot):
        signal_group(snapshot.pid, snapshot.ticks, signal.SIGKILL)
    return _with_an_end(job, wait_until(job, lambda s: s.state.over, timeout=SLACK))


def left_to_cancel(snapshot: JobSnapshot) -> str:
    """Why a job that was to be cancelled is not over yet, and what becomes of it; empty for one that is."""
    if snapshot.state.over:
        return ""
    if snapshot.unled:
        return f"{snapshot.trouble}. It was asked to stop, but only a worker that sees its folder hears that"
    if snapshot.trouble:
        return f"{snapshot.trouble}. The job is left to be cancelled as soon as that is over"
    return "it has not stopped yet; its keeper goes on trying" if snapshot.on else "it has not stopped yet"


def _end_elsewhere(job: JobDirectory) -> JobSnapshot:
    """The end of a job at an executor, or how it stands when its keeper hears nothing of it for a while."""
    end = time.monotonic() + job.grace + FAR_SLACK
    while True:
        snapshot = wait_until(job, lambda s: s.state.over or _unheard(s), timeout=end - time.monotonic())
        if snapshot.unled:
            return wait_until(job, lambda s: s.state.over, timeout=job.grace + SLACK)
        if not snapshot.state.over and _unheard(snapshot):
            snapshot = wait_until(job, lambda s: s.state.over or not _unheard(s), timeout=SLACK)
        if snapshot.state.over or _unheard(snapshot) or time.monotonic() >= end:
            return snapshot


def _unheard(snapshot: JobSnapshot) -> bool:
    """Whether a job's keeper does not reach it; one without a keeper gets another."""
    return bool(snapshot.trouble) and not snapshot.orphan


def refuse_live(job: JobDirectory) -> None:
    """StillRunning when a job is not over."""
    if not read_job(job).state.over:
        raise StillRunning("the job is not over", where=job.id, remedy=f"hfbench jobs cancel {job.short_id} stops it")


def remove(job: JobDirectory) -> None:
    """Delete the folder of a job that is over; StillRunning otherwise."""
    refuse_live(job)
    with naming_the_folder(job.path.parent):
        shutil.rmtree(job.path)


def _with_an_end(job: JobDirectory, snapshot: JobSnapshot) -> JobSnapshot:
    """Write the last event in place of a worker that was killed before it could."""
    if snapshot.state is State.CANCELLED and not has_final_event(job):
        with contextlib.suppress(OSError):
            lock = take_lock(job.lock, patience=1.0)
            if lock is not None:
                write_final(job, Cancelled(reason=snapshot.reason))
                os.close(lock)
    return snapshot


def _on_this_host(snapshot: JobSnapshot) -> bool:
    return snapshot.host in ("", socket.gethostname())
