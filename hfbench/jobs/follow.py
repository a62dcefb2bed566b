"""Waits for what happens to a job: the one place that polls, because events may come from another machine's disk."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.launch import adopt
from hfbench.jobs.snapshot import Follower, JobSnapshot, read_job
from hfbench.jobs.tail import read_at

FASTEST, SLOWEST = 0.02, 0.2
"""Seconds between two looks: short after something happened, longer while nothing does."""


def snapshots(
    job: JobDirectory, *, stop: Callable[[], bool] = lambda: False, sleep: Callable[[float], object] = time.sleep
) -> Iterator[JobSnapshot]:
    """A snapshot now and after every change, the last one when the job is over or `stop()` says so.

    A job elsewhere whose keeper is gone gets another: nothing new would ever be heard of it else.
    """
    follower, last, pause = Follower(job), None, FASTEST
    while not stop():
        snapshot = follower.read()
        if snapshot.orphan:
            adopt([job])
        if snapshot is not last:
            last, pause = snapshot, FASTEST
            yield snapshot
            if snapshot.state.over:
                return
        sleep(pause)
        pause = min(SLOWEST, pause * 1.5)


def wait_until(
    job: JobDirectory, condition: Callable[[JobSnapshot], bool], timeout: float | None = None
) -> JobSnapshot:
    """The first snapshot that meets the condition, or the last one when the job is over or the time is."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    for snapshot in snapshots(job, stop=lambda: time.monotonic() >= end):
        if condition(snapshot):
            return snapshot
    return read_job(job)


def log_lines(job: JobDirectory) -> Iterator[str]:
    """What the worker prints, line by line, until the job is over; bytes that are not UTF-8 stay escapes."""
    follower, partial, offset = Follower(job), b"", 0
    while True:
        snapshot = follower.read()  # before the log, so that its last lines are not missed
        if snapshot.orphan:
            adopt([job])
        while chunk := read_at(job.log, offset):
            offset += len(chunk)
            *lines, partial = (partial + chunk).split(b"\n")
            yield from (line.decode("utf-8", "surrogateescape") for line in lines)
        if snapshot.state.over:
            if partial:
                yield partial.decode("utf-8", "surrogateescape")
            return
        time.sleep(SLOWEST)
