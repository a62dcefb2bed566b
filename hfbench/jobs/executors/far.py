"""The far end of an ssh executor: starts the worker of one job on its machine and sends what it writes.

`python -m hfbench.jobs.executors.far` takes a line of JSON on stdin, then words, and ends when stdin does; the worker
does not.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO

import hfbench
from hfbench.errors import HfbenchError
from hfbench.jobs.cancel import request_cancel
from hfbench.jobs.directory import ID, JobDirectory, create, take_lock, try_lock
from hfbench.jobs.events import Cancelled, Died, Failed, Finished, from_line, to_line
from hfbench.jobs.files import open_regular
from hfbench.jobs.launch import start_worker
from hfbench.jobs.process import signal_group
from hfbench.jobs.snapshot import State, read_job
from hfbench.jobs.tail import has_final_event, read_at
from hfbench.jobs.writer import write_final
from hfbench.paths import expand, jobs_root

MAGIC = b"hfbench-far 1 "
"""What an answer begins with: anything before it was printed by a shell's start-up files."""
BOOT = "boot"
"""In a job's folder: the boot of the machine in which its worker was started."""
LEAST, MOST = 0.02, 0.2
"""Seconds between two looks."""


def main() -> int:
    """Serve one connection."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    try:
        asked = json.loads(source.readline())
        job = _job(asked)
    except HfbenchError as error:
        _hello(sink, {"error": error.parts()})
        return int(error.exit)
    except (ValueError, KeyError, TypeError, OSError) as error:
        _hello(sink, {"error": HfbenchError(f"the request cannot be taken: {error}").parts()})
        return 1
    _hello(sink, {"folder": str(job.path), "rsync": bool(shutil.which("rsync"))})
    with contextlib.suppress(BrokenPipeError):
        _serve(job, source, sink, int(asked["events"]), int(asked["log"]))
    return 0


def _hello(sink: BinaryIO, told: dict[str, Any]) -> None:
    told = {"hfbench": hfbench.__version__, "host": socket.gethostname(), **told}
    sink.write(MAGIC + json.dumps(told).encode() + b"\n")
    sink.flush()


def _job(asked: dict[str, Any]) -> JobDirectory:
    """The job's folder here, with its worker started unless one was before."""
    begun = int(asked["events"]) > 0
    root = expand(asked["folder"]) if asked["folder"] else jobs_root().with_name("far-jobs")
    name, request = str(asked["id"]), dict(asked["request"])
    if not ID.fullmatch(name):
        raise HfbenchError(f"{name!r} is no job id")
    job = JobDirectory(root / name)
    lock: int | None = None
    if not job.path.exists() and not begun:  # what was removed while it ran is not run again
        with contextlib.suppress(FileExistsError):
            job, lock = create(root, str(request["action"]), request, job_id=name)
    elif not begun and not job.events.stat().st_size:
        lock = take_lock(job.lock)  # free: whoever made the folder was cut off before it could start the worker
    if lock is not None:
        (job.path / BOOT).write_text(_boot())
        _start(job, lock)
    return job


def _start(job: JobDirectory, lock: int) -> None:
    try:
        with contextlib.suppress(OSError):
            os.chdir(Path.home())
            os.chdir(job.request["cwd"])
        start_worker(job, lock)
    except HfbenchError as error:
        write_final(job, Failed(error=error.parts()))
    finally:
        os.close(lock)


def _serve(job: JobDirectory, source: BinaryIO, sink: BinaryIO, events: int, log: int) -> None:
    """Send both files from these offsets on, and do what is asked, until the last event was sent or nobody listens."""
    pause, over, worker = LEAST, False, _Worker(job)
    while True:
        alive = worker.lives()  # asked before reading: a worker writes its last event before it lets go
        lines = read_at(job.events, events)
        lines = lines[: lines.rfind(b"\n") + 1]
        if text := read_at(job.log, log):
            log += len(text)
            _send(sink, "log", text)
        if lines:
            ends = any((event := from_line(line)) is not None and event.final for line in lines.splitlines())
            if ends and read_at(job.log, log):
                continue  # what it printed comes before its end
            events += len(lines)
            over = over or ends
            _send(sink, "events", lines)
        if not alive and not over and not lines:
            if job.path.is_dir():
                _bury(job)
            else:
                over = True
                _send(sink, "events", to_line(_removed(job)))
        pause = LEAST if lines or text else min(MOST, pause * 1.5)
        if select.select([source], [], [], pause)[0] and not _obey(job, source.readline()):
            return


class _Worker:
    """Tells whether the worker of a job lives, also when the folder was removed: its lock was opened before."""

    def __init__(self, job: JobDirectory) -> None:
        self._lock: int | None = None
        with contextlib.suppress(OSError):
            self._lock = open_regular(job.lock)

    def lives(self) -> bool:
        """True while a worker holds the lock."""
        with contextlib.suppress(OSError):
            if self._lock is not None and try_lock(self._lock, fcntl.LOCK_SH):
                fcntl.flock(self._lock, fcntl.LOCK_UN)
                return False
        return self._lock is not None


def _removed(job: JobDirectory) -> Died:
    """The last event of a job whose folder here is gone; its worker has ended for that."""
    return Died(reason=f"its folder on {socket.gethostname()}, {job.path}, was removed while it ran")


def _send(sink: BinaryIO, what: str, data: bytes) -> None:
    sink.write(f"{what} {len(data)}\n".encode() + data)
    sink.flush()


def _obey(job: JobDirectory, line: bytes) -> bool:
    """Do what a line asks; False when this was the last one."""
    match line.strip():
        case b"":
            return False
        case b"cancel":
            request_cancel(job)
        case b"kill":
            snapshot = read_job(job)
            signal_group(snapshot.pid, snapshot.ticks, signal.SIGKILL)
        case b"forget":
            shutil.rmtree(job.path, ignore_errors=True)
            return False
    return True


def _bury(job: JobDirectory) -> None:
    """Write the last event of a worker that is gone: the machine may have been restarted meanwhile."""
    with contextlib.suppress(OSError):
        if (lock := take_lock(job.lock, patience=1.0)) is None:
            return
        snapshot = read_job(job)
        if not has_final_event(job):
            if snapshot.state is State.FINISHED:
                write_final(job, Finished(seconds=float((job.read("result.json") or {}).get("seconds") or 0.0)))
            elif (job.path / "cancel.json").exists():
                write_final(job, Cancelled(reason="killed on request"))
            else:
                write_final(job, Died(reason=_how_it_went(job)))
        os.close(lock)


def _how_it_went(job: JobDirectory) -> str:
    try:
        before = (job.path / BOOT).read_text()
    except OSError:
        before = ""
    host = socket.gethostname()
    if before and before != _boot():
        return f"{host} was restarted while it ran"
    return f"the worker on {host} is gone and left no word"


def _boot() -> str:
    """What the kernel calls this boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
