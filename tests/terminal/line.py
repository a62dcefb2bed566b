"""A pseudo-terminal that is read at the pace of a line, and remembers which modes a program left it in."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyte

MODES = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
KITTY = re.compile(rb"\x1b\[([<>])\d*u")

SPEEDS = {9600: termios.B9600, 115200: termios.B115200}
BITS = 10
"""Of a byte on a serial line: eight, a start and a stop."""


class Line:
    """A program on a line of `baud` bits a second, or as fast as it goes; killed on exit."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
        baud: int | None = None,
    ) -> None:
        self.baud = baud
        self.output = bytearray()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._credit, self._since = 0.0, time.monotonic()
        self.fd, self.slave = pty.openpty()
        self.resize(columns, rows)
        if baud:
            told = termios.tcgetattr(self.slave)
            told[4] = told[5] = SPEEDS[baud]
            termios.tcsetattr(self.slave, termios.TCSANOW, told)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.login_tty(self.slave) if hasattr(os, "login_tty") else _login(self.slave)
                os.execvpe(command[0], list(command), {"TERM": "xterm-256color", **environment})
            finally:
                os._exit(127)
        self.status: int | None = None

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        os.close(self.slave)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, as a window that is drawn larger."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def told_of_size(self, columns: int, rows: int) -> None:
        """Change the size here and on the screen that is drawn."""
        self.resize(columns, rows)
        self.screen.resize(rows, columns)

    def press(self, keys: str) -> None:
        """Write keys as a terminal sends them."""
        os.write(self.fd, keys.encode())

    def read(self, seconds: float) -> bytes:
        """What comes in so many seconds, at the pace of the line."""
        end, seen = time.monotonic() + seconds, bytearray()
        while (rest := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], min(rest, 0.05))[0]:
                self._credit, self._since = 0.0, time.monotonic()
                continue
            try:
                read = os.read(self.fd, self._allowed())
            except OSError:  # the other side was closed
                break
            seen += read
            self.output += read
            self._stream.feed(KITTY.sub(b"", read))  # pyte would draw its last letter
        return bytes(seen)

    def _allowed(self) -> int:
        """Bytes that the line has carried since it was read last."""
        if not self.baud:
            return 65536
        rate = self.baud / BITS
        now = time.monotonic()
        self._credit = min(self._credit + (now - self._since) * rate, rate)
        self._since = now
        if self._credit < 1:
            time.sleep((1 - self._credit) / rate)
            self._credit, self._since = 1.0, time.monotonic()
        allowed = int(self._credit)
        self._credit -= allowed
        return allowed

    def shown(self) -> str:
        """The screen as text."""
        return "\n".join(self.screen.display)

    def wait(self, holds: str | Callable[[str], bool], seconds: float = 90.0) -> str:
        """The screen once it holds this; AssertionError shows it when it never does."""
        met = holds if callable(holds) else lambda shown: holds in shown
        end = time.monotonic() + seconds
        while not met(self.shown()):
            if time.monotonic() > end:
                raise AssertionError(f"{holds!r} never came; the screen shows\n{self.shown()}")
            self.read(0.05)
        return self.shown()

    def wait_for_end(self, seconds: float = 60.0) -> int:
        """The exit status, as the shell tells it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.1)
                self.status = os.waitstatus_to_exitcode(status)
                return self.status if self.status >= 0 else 128 - self.status
        raise AssertionError(f"the program never ended; the screen shows\n{self.shown()}")

    def modes(self) -> dict[str, bool]:
        """Private modes that were switched, as they are now; `kitty` is its keyboard protocol."""
        found: dict[str, bool] = {}
        for numbers, on in MODES.findall(bytes(self.output)):
            for number in numbers.decode().split(";"):
                found[number] = on == b"h"
        depth = sum(1 if sign == b">" else -1 for sign in KITTY.findall(bytes(self.output)))
        return {**found, "kitty": depth > 0}

    def termios(self) -> list[Any]:
        """How the line treats what is typed."""
        return termios.tcgetattr(self.slave)


def _login(slave: int) -> None:
    """Make a terminal the controlling one, and the standard streams."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(slave, number)
