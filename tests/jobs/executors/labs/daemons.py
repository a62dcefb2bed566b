"""Daemons of a test's own: in the foreground below it, in a short folder, ended by their pids alone."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import rmtree

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
FIRST_PORT, LAST_PORT = 24100, 32000
PATIENCE = 30.0
"""Seconds a daemon may take to be ready."""


class CannotBeHad(Exception):
    """Why a lab cannot be had on this machine: the reason of a skipped test."""


class Daemons:
    """Processes by name, their logs, and the folder they live in."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"hfb-{name}-", dir="/tmp"))  # a socket's path has 107 bytes
        self.folder.chmod(0o755)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, words: Sequence[str | Path], env: Mapping[str, str] | None = None) -> int:
        """Start a program in the foreground; its pid. It ends with this process, whatever ends that."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        return self._running[name].pid

    def pid(self, name: str) -> int:
        """The process of that name."""
        return self._running[name].pid

    def alive(self, name: str) -> bool:
        """Whether it still runs."""
        return name in self._running and self._running[name].poll() is None

    def stop(self, name: str, signum: signal.Signals = signal.SIGTERM) -> None:
        """Signal one and wait for its end; one that does not go is killed."""
        process = self._running.pop(name)
        if process.poll() is None:
            process.send_signal(signum)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def told(self, name: str) -> str:
        """The end of what one has printed."""
        with suppress(OSError):
            return (self.folder / f"{name}.log").read_text(errors="replace")[-1500:]
        return ""

    def close(self) -> None:
        """Stop all, the latest first, and remove the folder."""
        with ExitStack() as ends:
            ends.callback(rmtree, self.folder, ignore_errors=True)
            for name in self._running:
                ends.callback(self.stop, name)


def _end_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def need(*programs: str) -> None:
    """CannotBeHad unless all of these are installed."""
    for program in programs:
        if find_program(program) is None:
            raise CannotBeHad(f"{program} is not installed")


def find_program(name: str) -> str | None:
    """The path of a program, also where only root looks."""
    places = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", "/usr/local/sbin"]
    return next((path for place in places if os.access(path := f"{place}/{name}", os.X_OK)), None)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on: above Ray's, below those the kernel hands out to clients."""
    found: list[int] = []
    candidate = FIRST_PORT + os.getpid() * 37 % (LAST_PORT - FIRST_PORT)
    while len(found) < count:
        candidate = candidate + 1 if candidate < LAST_PORT else FIRST_PORT
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", candidate))
            found.append(candidate)
    return found


def until(ready: Callable[[], bool], otherwise: Callable[[], str], patience: float = PATIENCE) -> None:
    """Wait until something holds; CannotBeHad with the reason when it does not in time."""
    end = time.monotonic() + patience
    while not ready():
        if time.monotonic() > end:
            raise CannotBeHad(otherwise())
        time.sleep(0.05)


def listening(port: int) -> bool:
    """Whether somebody accepts connections on a port of the loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def processes_with(*marks: str | Path) -> list[int]:
    """Processes whose command line or environment holds all of these; neither this one nor any it hangs below."""
    found, ours = [], set(_ancestors())
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) not in ours:
            with suppress(OSError):
                told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                if all(str(mark).encode() in told for mark in marks):
                    found.append(int(entry.name))
    return found


def descendants(pid: int) -> list[int]:
    """All that a process has started and that still hangs below it, itself last."""
    children: list[str] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():  # each thread has children of its own
            children += (task / "children").read_text().split()
    return [each for child in children for each in descendants(int(child))] + [pid]


def parent(pid: int) -> int:
    """The process above another; 0 when that is gone."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _ancestors() -> list[int]:
    pid, found = os.getpid(), []
    while pid > 1:
        found.append(pid)
        pid = parent(pid)
    return found


def kill(pids: Iterable[int], signum: signal.Signals = signal.SIGKILL) -> None:
    """Signal these processes; those gone meanwhile are passed over."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signum)
