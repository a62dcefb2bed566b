"""Warm workers, on the conductor's side: one process for each set of libraries, made when first needed and again when
it dies; what cannot be warm is started cold."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress

from hfbench.actions.base import Spec
from hfbench.beside import ALONE
from hfbench.jobs.directory import JobDirectory, naming_the_folder
from hfbench.jobs.launch import WORKER, Start, reap, start_worker, worker_environment
from hfbench.jobs.warm import LONGEST, READY, TAKEN

HEAVY = ("torch", "transformers", "triton")
"""Libraries that take long enough to import to be kept."""
BEYOND = {
    "transformers": (
        "transformers.modeling_utils",
        "transformers.generation.utils",
        "transformers.models.auto.modeling_auto",
        "transformers.models.auto.tokenization_auto",
    ),
}
"""What a library imports only once it is used, and each job would import again."""
PATIENCE = 300.0
"""Seconds a warm process may take to import, on a disk that is slow the first time."""
OURS = "hfbench.actions."


class WarmWorkers:
    """All warm processes of a conductor."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], _Warm] = {}
        self._failed: set[tuple[str, ...]] = set()

    def start_for(self, spec: Spec) -> Start | None:
        """What starts a job of an action warm; None where it must start cold: what an action of the user's own wants to
        be true before transformers is imported is not known."""
        heavy = tuple(name for name in spec.needs if name in HEAVY)
        if heavy in self._failed or ("transformers" in heavy and not spec.cls.__module__.startswith(OURS)):
            return None
        return lambda job, lock: self._start(heavy, job, lock)

    def close(self) -> None:
        """Let go of all of them: they end, and their jobs go on."""
        for warm in self._kept.values():
            warm.close()
        self._kept = {}

    def _start(self, needs: tuple[str, ...], job: JobDirectory, lock: int) -> None:
        """Hand a job over; to a new warm process when the one there was is gone, and to a cold one after that."""
        log = _open_log(job)
        try:
            for _ in range(2):
                warm = self._kept.get(needs)
                if warm is None:
                    warm = self._kept[needs] = _Warm(needs)
                if warm.take(job, lock, log):
                    return
                self._kept.pop(needs).close()
        finally:
            os.close(log)
        self._failed.add(needs)
        reap(start_worker(job, lock), job.id)


class _Warm:
    """One warm process and the channel to it."""

    def __init__(self, needs: tuple[str, ...]) -> None:
        modules = [*needs, *(module for name in needs for module in BEYOND.get(name, ()))]
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(PATIENCE)
        self._ready = False
        with theirs:
            words = ["--warm", str(theirs.fileno()), "--import", *modules]
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-P", ALONE, WORKER, *words],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                env=worker_environment(foreign=False),
            )

    def take(self, job: JobDirectory, lock: int, log: int) -> bool:
        """Hand a job over; False when the process is gone and nobody has the job."""
        path = os.fsencode(job.path)
        if len(path) > LONGEST:
            return False
        try:
            self._ready = self._ready or self._channel.recv(LONGEST) == READY
            if not self._ready:
                return False
            socket.send_fds(self._channel, [path], [lock, log])
            return self._channel.recv(LONGEST) == TAKEN
        except OSError:
            return False

    def close(self) -> None:
        """Close the channel, at which the process ends, and collect its exit status if it does so soon."""
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)


def _open_log(job: JobDirectory) -> int:
    with naming_the_folder(job.path.parent):
        return os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
