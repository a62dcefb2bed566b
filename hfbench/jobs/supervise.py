"""Runs a job's work in a child process and sees how it ends: by itself, by a signal, by time, or on request."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.jobs.directory import GONE, JobDirectory
from hfbench.jobs.events import Cancelled, Died, Event, Failed
from hfbench.jobs.process import signal_name
from hfbench.jobs.tail import has_final_event
from hfbench.jobs.writer import write_final
from hfbench.units import show_bytes, show_seconds

TICK = 0.5
"""Seconds between two looks at the clock and at cancel.json; signals are seen at once."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PR_SET_PDEATHSIG = 1

EXPLAINED = {
    "SIGKILL": ": by somebody, or by a memory limit that leaves no trace here",
    "SIGSEGV": ": native code crashed",
    "SIGABRT": ": native code gave up",
    "SIGBUS": ": a mapped file shrank or the disk failed",
    "SIGILL": ": native code uses an instruction this CPU lacks",
}


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
    """`""` when nobody asked, else `cancel`, `timeout`, or `gone`: its folder was removed."""
    killed: bool
    """True when it did not stop in its grace time and was killed."""


def supervise(
    job: JobDirectory,
    work: Callable[[], int],
    *,
    timeout: Callable[[], float | None],
    lock: int | None = None,
    kept: bool = False,
) -> int:
    """Fork, let the child do `work` and return its exit status; write the last event if the child did not.

    `timeout()` gives the time (time.monotonic) at which the work must have ended, or None while there is no
    limit yet: the wait for a device does not count. The child leads a process group of its own, of which
    nothing is left when it has ended, and lets go of `lock`: a stray of its own must not hold it. Of a `kept` worker
    that a signal stopped, though nobody asked for it, the keeper tells the end: a scheduler may begin it again.
    """
    oom_before = _oom_kills()
    parent, signals = os.getpid(), _watch_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # no request is lost around the fork
    child = os.fork()
    if child == 0:
        if lock is not None:
            os.close(lock)
        _become_child(parent)
        os._exit(_guarded(work, before))
    with contextlib.suppress(OSError):
        os.setpgid(child, child)  # the child does so too: whoever comes first
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    stopped_by, killed = _wait(child, job, timeout, signals)
    _signal(child, signal.SIGKILL)  # what the child started and left behind; its own end is not collected yet
    _, status, usage = os.wait4(child, 0)
    ending = Ending(
        status=status,
        peak_rss=usage.ru_maxrss * 1024,
        oom_kills=_oom_kills() - oom_before,
        stopped_by=stopped_by,
        killed=killed,
    )
    if job.path.is_dir() and not has_final_event(job) and not (kept and _stopped_by_a_scheduler(job, ending)):
        write_final(job, last_words(ending, grace=job.grace, limit=job.request.get("timeout")))
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _stopped_by_a_scheduler(job: JobDirectory, ending: Ending) -> bool:
    """Whether a worker was stopped from outside while no cancel.json asks for it."""
    code = os.waitstatus_to_exitcode(ending.status)
    stopped = ending.stopped_by == "cancel" or code in (Exit.TERMINATED, -signal.SIGTERM)
    return stopped and ending.stopped_by != "gone" and not (job.path / "cancel.json").exists()


def last_words(ending: Ending, *, grace: float, limit: float | None) -> Event:
    """The final event of a job whose worker ended without writing one."""
    code = os.waitstatus_to_exitcode(ending.status)
    if ending.stopped_by == "timeout":
        allowed = f" of {show_seconds(limit)}" if limit else ""
        error = TookTooLong(f"ran longer than its time limit{allowed} and was stopped", remedy="raise the timeout")
        return Failed(error=error.parts())
    if ending.stopped_by == "gone":
        return Died(reason=f"stopped, because its folder had been away for {show_seconds(GONE)}")
    if ending.stopped_by == "cancel":
        how = f"killed after {show_seconds(grace)} of grace" if ending.killed else "stopped on request"
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


def _watch_signals() -> int:
    """A descriptor that becomes readable with each signal this process gets; none of them ends it."""
    readable, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for signum in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(signum, lambda *_: None)
    return readable


def _become_child(parent: int) -> None:
    """Lead a new group, and let the kernel kill this process with its supervisor: nobody could report on it."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _guarded(work: Callable[[], int], mask: Iterable[int]) -> int:
    """Do the work of the child; its exit status, whatever is raised."""
    try:
        for signum in STOP_SIGNALS:
            signal.signal(signum, _ask_to_stop)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return work()
    except CancelRequested:
        return Exit.TERMINATED
    except SystemExit as request:  # a library that thinks it is a program
        return request.code if isinstance(request.code, int) else Exit.FAILED
    except BaseException:
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return Exit.FAILED
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def _ask_to_stop(signum: int, frame: object) -> None:
    for each in STOP_SIGNALS:  # one request is enough: clean-up is not to be interrupted
        signal.signal(each, signal.SIG_IGN)
    raise CancelRequested(signal_name(signum))


def _wait(child: int, job: JobDirectory, timeout: Callable[[], float | None], signals: int) -> tuple[str, bool]:
    """Wait for the child; stop it on request or when its time is over. (stopped by, killed)"""
    stopped_by, asked_at, killed, there_at = "", 0.0, False, time.monotonic()
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        now = time.monotonic()
        if job.path.is_dir():
            there_at = now
        if not stopped_by:
            gone = "gone" if now > there_at + GONE else ""  # nobody could read of it any more, nor cancel it
            stopped_by, asked_at = _reason_to_stop(job, timeout, signals, now) or gone, now
            if stopped_by:
                _signal(child, signal.SIGTERM)
        elif not killed and now >= asked_at + job.grace:
            killed = True
            _signal(child, signal.SIGKILL)
        select.select([signals], [], [], TICK if not stopped_by else min(TICK, 0.05 + job.grace / 4))
        if stopped_by:
            _drain(signals)
    return stopped_by, killed


def _reason_to_stop(job: JobDirectory, timeout: Callable[[], float | None], signals: int, now: float) -> str:
    """`cancel` when a signal or a file asks for it, `timeout` when the time is over, else nothing."""
    if _drain(signals) & set(STOP_SIGNALS) or (job.path / "cancel.json").exists():
        return "cancel"
    limit = timeout()
    return "timeout" if limit is not None and now >= limit else ""


def _drain(fd: int) -> set[int]:
    try:
        return set(os.read(fd, 512))
    except BlockingIOError:
        return set()


def _signal(group: int, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


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
