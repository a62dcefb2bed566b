"""A program in a real pseudo-terminal: first frame, key to paint, bytes a repaint. Standard library only."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

KEYS = {
    "down": b"\x1b[B",
    "up": b"\x1b[A",
    "pageup": b"\x1b[5~",
    "pagedown": b"\x1b[6~",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "enter": b"\r",
    "escape": b"\x1b",
    "backspace": b"\x7f",
}

QUIET = 0.12
"""Seconds of silence that end a repaint."""

IDLE = 0.05
"""CPU seconds a second that a program at rest may use for its clocks."""

LONGEST = 3.0
"""Seconds a repaint may take in all: a blinking cursor never falls silent."""


@dataclass(frozen=True, slots=True)
class Painted:
    """What followed a key: seconds to the first byte, bytes until silence, and those bytes."""

    seconds: float
    output: bytes


class Terminal:
    """A command running in a pseudo-terminal of its own, with an empty home; killed on exit."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 40,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = tempfile.TemporaryDirectory(prefix="bench-home-")
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the child: nothing here may return
            try:
                os.environ.update(
                    TERM="xterm-256color", COLORTERM="truecolor", HOME=self.home.name, **(environment or {})
                )
                for name in (
                    "XDG_CONFIG_HOME",
                    "XDG_DATA_HOME",
                    "XDG_CACHE_HOME",
                    "NO_COLOR",
                    "TMUX",
                    "SSH_CONNECTION",
                ):
                    os.environ.pop(name, None)
                os.execvp(command[0], list(command))
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        self.home.cleanup()

    def wait_for(self, text: str, timeout: float = 120.0) -> float:
        """Seconds from the start to the first output that holds `text`; TimeoutError with the end of the output."""
        seen, until, wanted = b"", time.perf_counter() + timeout, text.encode()
        while wanted not in seen:
            if not self._ready(max(0.0, until - time.perf_counter())):
                raise TimeoutError(f"{text!r} never came; the output ends with {seen[-300:]!r}")
            read = self._read()
            if not read:
                raise TimeoutError(f"the program ended before {text!r}; its output ends with {seen[-300:]!r}")
            seen += read
        return time.perf_counter() - self.started

    def drain(self, quiet: float = QUIET) -> bytes:
        """What comes until there is silence."""
        seen, until = b"", time.perf_counter() + LONGEST
        while time.perf_counter() < until and self._ready(quiet):
            read = self._read()
            if not read:
                break
            seen += read
        return seen

    def press(self, key: str, timeout: float = 5.0) -> Painted:
        """Write a key of KEYS, or any text as it is, and see what is painted; TimeoutError when nothing is."""
        begin = time.perf_counter()
        os.write(self.fd, KEYS.get(key, key.encode()))
        if not self._ready(timeout):
            raise TimeoutError(f"{key!r} painted nothing in {timeout:g} s")
        seconds = time.perf_counter() - begin
        return Painted(seconds, self.drain())

    def answer(self, key: str, wanted: str | re.Pattern[bytes], timeout: float = 20.0) -> Painted:
        """Write a key and wait until this is painted, whatever else is painted meanwhile."""
        found = (wanted if isinstance(wanted, re.Pattern) else re.compile(re.escape(wanted.encode()))).search
        seen, begin = b"", time.perf_counter()
        os.write(self.fd, KEYS.get(key, key.encode()))
        while not found(seen):
            if time.perf_counter() - begin > timeout:
                raise TimeoutError(f"{key!r} never brought {wanted!r}; the output ends with {seen[-300:]!r}")
            if self._ready(0.1):
                seen += self._read()
        return Painted(time.perf_counter() - begin, seen)

    def repaint(self, gap: float, timeout: float = 20.0) -> bytes:
        """The next repaint: what comes after the silence that ends the one before, up to `gap` seconds of silence."""
        if not self._ready(timeout):
            raise TimeoutError(f"nothing was painted in {timeout:g} s")
        return self.drain(gap)

    def read_for(self, seconds: float) -> bytes:
        """Everything painted in so many seconds."""
        seen, until = b"", time.perf_counter() + seconds
        while (rest := until - time.perf_counter()) > 0:
            if self._ready(rest):
                seen += self._read()
        return seen

    def wait_until_idle(self, timeout: float = 300.0) -> None:
        """Wait until neither the program nor its children do anything for a second, reading what is painted."""
        until, before = time.perf_counter() + timeout, -1.0
        while (now := self._cpu_of_all()) - before > IDLE:
            if time.perf_counter() > until:
                raise TimeoutError(f"the program still works after {timeout:g} s")
            before = now
            self.read_for(1.0)

    def _cpu_of_all(self) -> float:
        """CPU seconds of the program and of the processes below it."""
        pending, ticks = [str(self.pid)], 0
        while pending:
            process = Path("/proc", pending.pop())
            try:
                ticks += sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13]))
                pending += [child for each in process.glob("task/*/children") for child in each.read_text().split()]
            except OSError:
                continue  # it ended meanwhile
        return ticks / os.sysconf("SC_CLK_TCK")

    def cpu_seconds(self) -> float:
        """CPU time the program has used, by the clock the kernel keeps of each process."""
        return time.clock_gettime(~self.pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of Linux

    def peak_bytes(self) -> int:
        """The most memory it has held (VmHWM)."""
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self.fd], [], [], seconds)[0])

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, 65536)
        except OSError:  # the program closed its side
            return b""
