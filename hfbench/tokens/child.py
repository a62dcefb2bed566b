"""A process with limits that answers one request at a time, ended when it hangs and started again when asked again.

A request and an answer are one JSON line each, followed by as many raw bytes as its `bytes` says.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from hfbench.beside import python_path
from hfbench.errors import error_from_parts

Ending = Literal["timeout", "memory", "crash", "closed"]

LONGEST_LINE = 64 * 2**20
"""Bytes of the JSON of an answer."""

CHUNK = 2**20

WALL = 4
"""Seconds on the wall for a second of CPU time that a request may take, and once more for the start of a process."""


class ChildEnded(Exception):
    """The process ended instead of answering; `ending` says how, `signal` names what ended it."""

    def __init__(self, ending: Ending, signal_name: str = "") -> None:
        self.ending, self.signal = ending, signal_name
        super().__init__(f"{ending} {signal_name}".rstrip())


class Child:
    """The process of one module of this room. `generation` counts how often it was started."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self.generation = 0

    @property
    def alive(self) -> bool:
        """True while the process that answered last still runs."""
        return self._process is not None and self._process.poll() is None

    def ask(
        self, request: Mapping[str, Any], payload: bytes = b"", *, seconds: float, wall: float | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """The answer and its bytes. `seconds` of CPU time are the process's own limit, on the wall it gets more, if
        `wall` does not say otherwise.

        Raises ChildEnded, or the HfbenchError that the process answered with.
        """
        process = self._running()
        line = json.dumps({**request, "seconds": seconds, "bytes": len(payload)}).encode() + b"\n"
        try:
            told, body = _exchange(process, line + payload, monotonic() + (wall or WALL * (seconds + 1.0)))
        except TimeoutError:
            raise self._ended(process, late=True) from None
        except (OSError, ValueError, EOFError):
            raise self._ended(process, late=False) from None
        if "error" in told:
            raise error_from_parts(told["error"])
        return told, body

    def close(self) -> None:
        """End the process for good; a request under way ends with ChildEnded."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise ChildEnded("closed")
        if self._process is None or self._process.poll() is not None:
            self._process = start(self._module)
            self.generation += 1
            if self._closed:  # meanwhile, by another thread
                raise self._ended(self._process, late=False)
        return self._process

    def _ended(self, process: subprocess.Popen[bytes], *, late: bool) -> ChildEnded:
        try:
            process.wait(1.0 if not late else 0.0)  # one that ends by its limits is on its way out already
        except subprocess.TimeoutExpired:
            process.kill()
        with process:  # closes the pipes and waits
            pass
        self._process = None
        if self._closed:
            return ChildEnded("closed")
        return ChildEnded("timeout" if late else ending_of(process.returncode), _name_of(process.returncode))


def start(module: str) -> subprocess.Popen[bytes]:
    """A process of that module. -P and the folder: it must never import from where a model's files lie."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-m", module]
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment(), cwd="/", bufsize=0
    )


def cpu_seconds(process: int) -> float:
    """The CPU time a process has had so far; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ending_of(returncode: int) -> Ending:
    """How a process ended that its limits may have ended.

    Native code that gets no memory aborts; SIGKILL that we did not send comes from the kernel for want of memory.
    """
    if returncode == -signal.SIGPROF:
        return "timeout"
    return "memory" if returncode in (-signal.SIGABRT, -signal.SIGKILL) else "crash"


def environment() -> dict[str, str]:
    """What such a process knows of ours: where Python's packages are, and no secret."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.environ.get("HOME", "/"),  # without it Python asks the system's list of users
        "PYTHONPATH": python_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "RAYON_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",  # each of its threads would take address space
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }


def _exchange(process: subprocess.Popen[bytes], sent: bytes, until: float) -> tuple[dict[str, Any], bytes]:
    """Write all of a request, then read all of an answer; TimeoutError when the moment `until` passes."""
    assert process.stdin
    assert process.stdout
    writing, reading = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(writing, False)
    left = memoryview(sent)
    while left:
        _wait(writing, select.POLLOUT, until)
        left = left[os.write(writing, left[:CHUNK]) :]
    got = bytearray()
    while (end := got.find(b"\n", max(0, len(got) - CHUNK))) < 0:
        got += _read(reading, until)
        if len(got) > LONGEST_LINE:
            raise ValueError("an answer without an end")
    told: dict[str, Any] = json.loads(bytes(got[:end]))
    del got[: end + 1]
    while len(got) < told["bytes"]:
        got += _read(reading, until)
    return told, bytes(got)


def _read(descriptor: int, until: float) -> bytes:
    _wait(descriptor, select.POLLIN, until)
    part = os.read(descriptor, CHUNK)
    if not part:
        raise EOFError
    return part


def _wait(descriptor: int, event: int, until: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    left = until - monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError


def _name_of(returncode: int) -> str:
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"status {returncode}"
