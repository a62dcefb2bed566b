"""One benchmark at a time per device: a lock file for each, held while the action runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hfbench.jobs.directory import naming_the_folder, try_lock
from hfbench.jobs.files import open_regular

LOCKS = "the folder of device locks"
POLL = 0.1
"""Seconds between two looks at a device that is taken; a wait ends that much late at most."""


def lease_file(root: Path, device: str) -> Path:
    """The lock file of a device key such as `cpu` or a GPU's UUID."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", device)[:80]
    plain = safe == device and safe.strip(".")
    return root / (safe if plain else f"{safe}-{hashlib.sha256(device.encode()).hexdigest()[:8]}")


def holder(root: Path, device: str) -> str:
    """The job that holds a device now, or an empty string; a holder that left no name is `another process`."""
    try:
        fd = open_regular(lease_file(root, device))
    except OSError:
        return ""
    try:
        return "" if try_lock(fd, fcntl.LOCK_SH) else _named(fd)
    except OSError:
        return ""
    finally:
        os.close(fd)


@contextlib.contextmanager
def hold(root: Path, device: str, job_id: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold a device for the length of a `with` block; `waiting(holder)` is called whenever the holder changes.

    Who came first gets it first. Lock and ticket die with the process: a killed job never blocks the next one.
    """
    fd = _open(root, device)
    try:
        told = None
        with _in_line(lease_file(root, device)) as first:
            while not first() or not _locked(fd, root):
                now = _named(fd)
                if now != told:
                    waiting(now)
                    told = now
                time.sleep(POLL)
        _sign(fd, job_id)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def _in_line(lease: Path) -> Iterator[Callable[[], bool]]:
    """Stand in line for a lease: the block is given a function that tells whether nobody alive came earlier.

    A ticket is a file beside the lease, named by the time and locked by whoever waits. Where none can be made
    there is no line, and the quickest wins.
    """
    ticket = lease.with_name(f".{lease.name}.{time.time_ns():020d}-{secrets.token_hex(4)}")
    unseen = ticket.with_name(f"{ticket.name}.new")  # seen only once it is locked: else it would pass for a dead one
    fd = -1
    try:
        with contextlib.suppress(OSError):
            fd = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try_lock(fd, fcntl.LOCK_EX)
            unseen.rename(ticket)
        yield lambda: not any(map(_waits, _earlier(ticket, lease.name)))
    finally:
        if fd >= 0:
            for each in (unseen, ticket):
                with contextlib.suppress(OSError):
                    each.unlink()
            os.close(fd)


def _earlier(ticket: Path, lease: str) -> list[Path]:
    """The tickets for a lease that were drawn before this one."""
    pattern = re.compile(re.escape(f".{lease}.") + r"\d{20}-[0-9a-f]{8}")
    try:
        names = os.listdir(ticket.parent)
    except OSError:
        return []
    return [ticket.with_name(name) for name in sorted(names) if name < ticket.name and pattern.fullmatch(name)]


def _waits(ticket: Path) -> bool:
    """Whether the process that drew a ticket still waits; the ticket of a dead one is swept away."""
    try:
        fd = open_regular(ticket)
    except OSError:
        return False
    try:
        if not try_lock(fd, fcntl.LOCK_SH):
            return True
        ticket.unlink()
    except OSError:
        pass  # another user's, or already gone: dead all the same
    finally:
        os.close(fd)
    return False


def _open(root: Path, device: str) -> int:
    """Open the lock file, shared by all users of the machine: made world-writable, never followed when a link."""
    path = lease_file(root, device)
    with naming_the_folder(root, LOCKS):
        if not root.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):
                root.chmod(0o1777)
        for flags in (os.O_RDWR, os.O_RDONLY, os.O_RDWR | os.O_CREAT):
            try:
                fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
            except (FileNotFoundError, PermissionError):
                if flags & os.O_CREAT:
                    raise
                continue
            with contextlib.suppress(OSError):
                os.fchmod(fd, 0o666)
            return fd
    raise AssertionError("unreachable: the last attempt returns or raises")


def _locked(fd: int, root: Path) -> bool:
    with naming_the_folder(root, LOCKS):
        return try_lock(fd, fcntl.LOCK_EX)
    raise AssertionError("unreachable: the block returns or raises")


def _sign(fd: int, job_id: str) -> None:
    """Leave the holder's name for those who wait; a lock opened read-only stays unsigned."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps({"job": job_id, "pid": os.getpid()}).encode(), 0)


def _named(fd: int) -> str:
    try:
        return str(json.loads(os.pread(fd, 4096, 0))["job"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
