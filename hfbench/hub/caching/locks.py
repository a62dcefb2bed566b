"""Locks of a cache: which are held and by whom, and which a dead process left behind."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from hfbench.hub.caching.facts import Lock
from hfbench.hub.pulling.locks import holder_of

MOST_MARKER = 1024
SUFFIX = ".lock"


def read_locks(folder: Path) -> tuple[list[Lock], int]:
    """Locks that are held, stale or of unknown state, and how many lie idle."""
    found, idle = [], 0
    for path in lock_files(folder):
        lock = read_lock(path)
        if lock is None:
            idle += 1
        else:
            found.append(lock)
    return found, idle


def lock_files(folder: Path) -> Iterator[Path]:
    """Every lock file: `.locks/REPOSITORY/NAME.lock`, links not followed."""
    for top, _, names in os.walk(folder):
        yield from (Path(top) / name for name in sorted(names) if name.endswith(SUFFIX))


def read_lock(path: Path) -> Lock | None:
    """The state of a lock file, None where nobody holds it.

    An empty file is one for flock, which dies with its process. One with content is a marker of a file system without
    flock, and outlives its process.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        text = os.read(fd, MOST_MARKER).decode("utf-8", "replace")
        if text.strip():
            return _of_marker(path, text)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not meet each other
        except BlockingIOError:
            pid = holder_of(path)
            return Lock(path=str(path), state="held", owner=_process(pid) if pid else "a process that cannot be told")
        except OSError:
            return None  # no flock here: an empty file is no marker
        return None
    finally:
        os.close(fd)


def _of_marker(path: Path, text: str) -> Lock:
    pid, host = _owner(text)
    if pid is None:
        return Lock(path=str(path), state="unknown", owner="a marker that names nobody")
    if host and host != socket.gethostname():
        return Lock(path=str(path), state="unknown", owner=f"process {pid} on {host}")
    if _lives(pid):
        return Lock(path=str(path), state="held", owner=_process(pid))
    return Lock(path=str(path), state="stale", owner=f"process {pid}, which is no more")


def _owner(text: str) -> tuple[int | None, str]:
    """Process and host of a marker of filelock: a line each, or `pid=` and `host=` in the newer form."""
    lines = text.splitlines()
    told = dict(line.split("=", 1) for line in lines if "=" in line)
    pid, host = told.get("pid", lines[0].strip()), told.get("host", lines[1].strip() if len(lines) > 1 else "")
    return (int(pid) if pid.isascii() and pid.isdigit() and 0 < int(pid) < 2**31 else None), host


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True


def _process(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        name = ""
    return f"process {pid}" + (f" ({name})" if name else "")
