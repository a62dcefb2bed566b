"""Ends a child with all it ever started, those too that left its group and those whose parents are gone."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping

from hfbench.beside import end_group

MARK = "HFBENCH_CHILD"
"""A variable that everything inherits which a child starts, unless it is taken away on purpose."""
MOST_ROUNDS = 20
"""Looks at /proc: what is started while one is taken is found by the next."""


def marked(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a child, with a mark of its own."""
    return {**environment, MARK: secrets.token_hex(8)}


def end_tree(child: subprocess.Popen[bytes], environment: Mapping[str, str]) -> int:
    """End a child that was started with a `marked` environment, and all it started; its return code."""
    mark = f"{MARK}={environment[MARK]}".encode()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if child.returncode is None:  # not reaped: the id is its own
            os.killpg(child.pid, signal.SIGKILL)
    for _ in range(MOST_ROUNDS):
        found = [pid for pid in _others() if _carries(pid, mark)]
        if not found:
            break
        for pid in found:
            _end(pid, mark)
    return end_group(child)


def _others() -> Iterator[int]:
    """Processes of this user but this one."""
    own, user = os.getpid(), os.getuid()
    with os.scandir("/proc") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # it ended meanwhile
                if entry.name.isdecimal() and int(entry.name) != own and entry.stat().st_uid == user:
                    yield int(entry.name)


def _carries(pid: int, mark: bytes) -> bool:
    """Whether a process has the mark; one that ended and waits for its parent has no variables any more."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def _end(pid: int, mark: bytes) -> None:
    with contextlib.suppress(OSError):  # it ended by itself
        descriptor = os.pidfd_open(pid)
        try:
            if _carries(pid, mark):  # the id may be another process's by now
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
