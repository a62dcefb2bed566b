"""Warm workers, on their own side: a process that has imported libraries and forks a worker for each job it is told.

What it forks is in a session of its own and supervised as any worker: nothing that a job does, a crash included,
reaches the warm process or another job, and a job outlives the warm process.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hfbench.exits import complain
from hfbench.jobs.directory import JobDirectory

READY, TAKEN = b"ready", b"taken"
LONGEST = 8192
"""Bytes of a message: the path of a job's folder."""
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it a library that looks for GPUs while it is imported leaves CUDA alone, which would not survive a fork."""


def serve(channel: int, modules: Sequence[str], work: Callable[[JobDirectory, int], int]) -> NoReturn:
    """Import the modules, then fork a process that does `work(job, lock)` for each job that comes through the channel,
    with its lock and its log as descriptors; until the other end is closed."""
    with socket.socket(fileno=channel) as asked:
        try:
            import_all(modules)
            gc.freeze()  # a child's first look for garbage would otherwise copy all of it
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            asked.send(READY)
        except (BrokenPipeError, ConnectionResetError):
            _leave("nobody waits any more for the warm process, which was still importing: it ends", 0)
        except ImportError as error:
            _leave(f"no warm process: {error}; workers start cold", 1)
        while True:
            message, descriptors, *_ = socket.recv_fds(asked, LONGEST, 2)
            _collect()
            if not message:
                os._exit(0)  # at once: what libraries do at their end took longer and wrote about it
            lock, log = descriptors
            if os.fork() == 0:
                asked.send(TAKEN)  # by who has the job: the channel is not at its end before this is said or never will
                asked.close()
                os._exit(_begin(JobDirectory(Path(os.fsdecode(message))), lock, log, work))
            os.close(lock)
            os.close(log)


def _leave(sentence: str, status: int) -> NoReturn:
    """End at once with a sentence in the log."""
    complain(sentence)
    os._exit(status)


def _collect() -> None:
    """Take note of the workers that ended, so that they are gone and their CPU time is counted as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def import_all(modules: Sequence[str]) -> None:
    """Import modules without a look at CUDA; ImportError passes through."""
    before = os.environ.get(NVML_CHECK)
    os.environ[NVML_CHECK] = "1"
    try:
        for name in modules:
            importlib.import_module(name)
    finally:
        del os.environ[NVML_CHECK]
        if before is not None:
            os.environ[NVML_CHECK] = before


def _begin(job: JobDirectory, lock: int, log: int, work: Callable[[JobDirectory, int], int]) -> int:
    """Become the worker of a job, as if started for it alone; its exit status."""
    try:
        os.setsid()
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log, stream.fileno())
        os.close(log)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with suppress(OSError, TypeError, KeyError):
            os.chdir(job.request["cwd"])
        return work(job, lock)
    except BaseException:
        traceback.print_exc()
        return 1
