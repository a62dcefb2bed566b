"""Runs a job's work in a child process and sees how it ends: by itself, by a signal, by time, or on request."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Cancelled, Died, Event, Failed
from hfbench.jobs.process import signal_name
from hfbench.jobs.tail import has_final_event
from hfbench.jobs.writer import EventWriter
from hfbench.units import show_bytes, show_elapsed

GRACE = 10.0
"""Seconds between asking a job to stop and killing it."""
PR_SET_PDEATHSIG = 1


class CancelRequested(BaseException):
    """Raised in the working process by SIGTERM or SIGINT; not an Exception, so that no library swallows it."""


class TookTooLong(HfbenchError):
    """The job ran longer than its request allows."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How the child ended: its wait status and what it used."""

    status: int
    peak_rss: int
    oom_kills: int
    stopped_by: str
    """`""` when nobody asked, else `cancel` or `timeout`."""
    killed: bool
    """True when it did not stop in its grace time and was killed."""


def supervise(job: JobDirectory, work: Callable[[], int], *, timeout: Callable[[], float | None]) -> int:
    """Fork, let the child do `work` and return its exit status; write the last event if the child did not.

    `timeout()` gives the time (time.monotonic) at which the work must have ended, or None while there is no
    limit yet: the wait for a device does not count.
    """
    oom_before = _oom_kills()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(parent)
        os._exit(_guarded(work))
    status, stopped_by, killed = _wait(child, timeout)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    ending = Ending(
        status=status,
        peak_rss=usage.ru_maxrss * 1024,
        oom_kills=_oom_kills() - oom_before,
        stopped_by=stopped_by,
        killed=killed,
    )
    if not has_final_event(job):
        writer = EventWriter(job)
        writer(last_words(ending))
        writer.close()
    return os.waitstatus_to_exitcode(status)


def last_words(ending: Ending) -> Event:
    """The final event of a job whose worker ended without writing one."""
    code = os.waitstatus_to_exitcode(ending.status)
    if ending.stopped_by == "timeout":
        error = TookTooLong("ran longer than its time limit and was stopped", remedy="raise the timeout")
        return Failed(error=error.parts())
    if ending.stopped_by == "cancel":
        how = f"killed after {show_elapsed(GRACE)} of grace" if ending.killed else "stopped on request"
        return Cancelled(reason=how)
    if code == Exit.TERMINATED:
        return Cancelled(reason="stopped by a signal")
    if code >= 0:
        return Died(reason=f"the worker exited with status {code} without a result", status=code)
    name = signal_name(-code)
    if name == "SIGKILL" and ending.oom_kills > 0:
        used = show_bytes(ending.peak_rss)
        return Died(reason=f"killed by the kernel: out of memory (peak {used} of host memory)", signal=name)
    return Died(reason=f"killed by {name}{EXPLAINED.get(name, '')}", signal=name)


EXPLAINED = {
    "SIGKILL": ": by somebody, or by a memory limit that leaves no trace here",
    "SIGSEGV": ": native code crashed",
    "SIGABRT": ": native code gave up",
    "SIGBUS": ": a mapped file shrank or the disk failed",
    "SIGILL": ": native code uses an instruction this CPU lacks",
}


def _guarded(work: Callable[[], int]) -> int:
    """Run the work with the signal handlers of a working process; flush what it printed."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, _ask_to_stop)
    try:
        return work()
    except CancelRequested:
        return Exit.TERMINATED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _ask_to_stop(signum: int, frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):  # one request is enough: clean-up is not to be interrupted
        signal.signal(each, signal.SIG_IGN)
    raise CancelRequested(signal_name(signum))


def _wait(child: int, timeout: Callable[[], float | None]) -> tuple[int, str, bool]:
    """Wait for the child; stop it on SIGTERM or when its time is over. (status, stopped by, killed)"""
    requests, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(signum, lambda *_: None)
    stopped_by, asked_at, killed = "", 0.0, False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status, stopped_by, killed
        now = time.monotonic()
        if not stopped_by and (limit := timeout()) is not None and now >= limit:
            stopped_by, asked_at = "timeout", now
            os.kill(child, signal.SIGTERM)
        if stopped_by and not killed and now >= asked_at + GRACE:
            killed = True
            os.kill(child, signal.SIGKILL)
        select.select([requests], [], [], 0.2)
        received = _drain(requests)
        if not stopped_by and received & {signal.SIGTERM, signal.SIGINT}:
            stopped_by, asked_at = "cancel", time.monotonic()
            os.kill(child, signal.SIGTERM)  # the request may have come to this process alone


def _drain(fd: int) -> set[int]:
    try:
        return set(os.read(fd, 512))
    except BlockingIOError:
        return set()


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its supervisor is killed: nobody would be left to report on it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _oom_kills() -> int:
    """Kernel OOM kills so far on this machine and in this control group."""
    total = 0
    for path in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        try:
            for line in Path(path).read_text().splitlines():
                if line.startswith("oom_kill "):
                    total += int(line.split()[1])
        except OSError:
            continue
    return total
