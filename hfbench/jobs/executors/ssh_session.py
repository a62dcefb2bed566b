"""One connection to the far end of a job: frames that come, words that go."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from hfbench.errors import HfbenchError, UsageError, error_from_parts
from hfbench.jobs.executors.base import ExecutorTrouble
from hfbench.jobs.executors.far import MAGIC
from hfbench.jobs.executors.ssh_client import meaning, ssh_words

CHUNK = 1 << 20
MOST_NOISE = 64 * 1024
"""Bytes that a shell's start-up files may print before the far end speaks."""
FAR = "hfbench.jobs.executors.far"


class Session:
    """An ssh process that runs the far end, and what was read of it so far."""

    def __init__(self, host: str, python: str, asked: dict[str, Any]) -> None:
        self.host = host
        self.hello: dict[str, Any] | None = None
        """What the far end said of itself; None until it did."""
        self._buffer = b""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # a pipe would have to be read as well
        self._process = subprocess.Popen(
            [*ssh_words(host), "--", host, far_command(python, "-u", "-P", "-m", FAR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self.send(json.dumps(asked))

    def fileno(self) -> int:
        """The descriptor on which frames come, for select."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, line: str) -> None:
        """Say something to the far end; when it is gone, `frames` will tell."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def frames(self) -> Iterator[tuple[str, bytes]]:
        """What has come whole. When the connection has ended: ExecutorTrouble, or what ssh's complaint means."""
        ended = self._read()
        if self.hello is None:
            self._meet()
        while self.hello is not None and (frame := self._next()):
            yield frame
        if ended:
            raise self._end()

    def close(self) -> None:
        """End the connection; the far end sees it and leaves its worker alone."""
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(OSError), self._process:  # closes the pipes and waits
            pass
        self._said.close()

    def _read(self) -> bool:
        """Take in what is there; True at the end of the stream."""
        assert self._process.stdout is not None
        while True:
            try:
                data = os.read(self._process.stdout.fileno(), CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not data:
                return True
            self._buffer += data

    def _meet(self) -> None:
        """Find the far end's first line behind whatever a login prints."""
        begin = self._buffer.find(MAGIC)
        end = self._buffer.find(b"\n", begin) if begin >= 0 else -1
        if end < 0:
            self._buffer = self._buffer[-MOST_NOISE:]
            return
        try:
            self.hello = json.loads(self._buffer[begin + len(MAGIC) : end])
        except ValueError:
            raise ExecutorTrouble(f"{self.host} answers what cannot be read") from None
        self._buffer = self._buffer[end + 1 :]
        if error := self.hello.get("error"):
            raise error_from_parts(error)

    def _next(self) -> tuple[str, bytes] | None:
        head, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        what, _, size = head.decode("ascii", "replace").partition(" ")
        if what not in ("events", "log") or not size.isdecimal():
            raise ExecutorTrouble(f"{self.host} sends what cannot be read")
        if len(rest) < int(size):
            return None
        self._buffer = rest[int(size) :]
        return what, rest[: int(size)]

    def _end(self) -> HfbenchError:
        """Why the connection ended."""
        status = self._process.wait()
        self._said.seek(0)
        said = self._said.read(CHUNK).decode(errors="replace")
        if self.hello is None:
            return meaning(self.host, status, said)
        return ExecutorTrouble(f"the connection to {self.host} was cut; trying again")


def far_command(python: str, *words: str) -> str:
    """A command for whatever shell a user has over there."""
    if any(each in python for each in "\n\0"):
        raise UsageError("the name of the far interpreter has a line break", where="python")
    quoted = shlex.join(words)
    program = f"~/{shlex.quote(python[2:])}" if python.startswith("~/") else shlex.quote(python)
    return f"sh -c {shlex.quote(f'exec {program} {quoted}')}"
