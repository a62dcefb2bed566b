"""One job's folder: names, atomic writes, the lock that tells whether its worker lives."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError

ID = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[a-z0-9_.]+-[0-9a-f]{6}")
REQUEST_VERSION = 1
RESERVE_BYTES = 16 * 1024
"""Kept aside in each folder, so that a job on a full disk can still say why it failed."""


class JobsFolderError(HfbenchError):
    """The folder of jobs cannot be written or read."""


class NoSuchJob(UsageError):
    """No job directory has that id, or several begin with it."""


@dataclass(frozen=True)
class JobDirectory:
    """Paths of one job. Holds no state: every question is answered by looking."""

    path: Path

    @property
    def id(self) -> str:
        """The folder's name; its last six characters are enough to type."""
        return self.path.name

    @property
    def short_id(self) -> str:
        """The random tail of the id."""
        return self.id.rpartition("-")[2]

    @property
    def events(self) -> Path:
        """Append-only events, a JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def log(self) -> Path:
        """Standard output and error of the worker."""
        return self.path / "output.log"

    @property
    def lock(self) -> Path:
        """Held by the live worker."""
        return self.path / "lock"

    @property
    def reserve(self) -> Path:
        """Room for the last words of a job on a full disk."""
        return self.path / "reserve"

    @cached_property
    def request(self) -> dict[str, Any]:
        """The request as it was asked; it never changes."""
        return self.read("request.json") or {}

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON file of the job; None when it is absent or not (yet) whole."""
        try:
            data = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    def write(self, name: str, data: object) -> None:
        """Write a JSON file so that readers see all of it or nothing."""
        write_json(self.path / name, data)

    def alive(self) -> bool:
        """True while a worker holds the lock."""
        try:
            fd = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
        finally:
            os.close(fd)
        return False


def create(root: Path, action: str, request: dict[str, Any]) -> JobDirectory:
    """Make the folder of a new job and write its request; JobsFolderError when that cannot be done."""
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    job = JobDirectory(root / f"{stamp}-{action}-{secrets.token_hex(3)}")
    with naming_the_folder(root):
        job.path.mkdir(parents=True)
        (job.path / "artifacts").mkdir()
        job.reserve.write_bytes(b"\0" * RESERVE_BYTES)
        job.events.touch()
        job.write("request.json", {"v": REQUEST_VERSION, "action": action, "created": time.time(), **request})
    return job


def find_job(root: Path, wanted: str) -> JobDirectory:
    """The job with that id, or whose id ends or begins with it; NoSuchJob when none or several do."""
    exact = JobDirectory(root / wanted)
    if ID.fullmatch(wanted) and exact.path.is_dir():
        return exact
    if not wanted or "/" in wanted:
        raise NoSuchJob(f"{wanted!r} is not a job id", remedy="hfbench jobs list shows them")
    if wanted in ("last", "@"):
        if not (ids := job_ids(root)):
            raise NoSuchJob("there is no job yet", where=root)
        return _latest(root, ids)
    matches = [each for each in job_ids(root) if each.endswith(wanted) or each.startswith(wanted)]
    if len(matches) != 1:
        found = f"{len(matches)} jobs match {wanted!r}" if matches else f"no job matches {wanted!r}"
        raise NoSuchJob(found, where=root, remedy="hfbench jobs list shows their ids")
    return JobDirectory(root / matches[0])


def job_ids(root: Path) -> list[str]:
    """Ids of all jobs below a root, oldest first; an absent root holds none."""
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if ID.fullmatch(entry.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JobsFolderError(f"the jobs folder cannot be read: {error.strerror}", where=root) from error


def _latest(root: Path, ids: list[str]) -> JobDirectory:
    """The newest of these jobs: ids tell the second, requests the moment."""
    second = ids[-1][:19]
    return max(
        (JobDirectory(root / each) for each in ids if each.startswith(second)),
        key=lambda job: float(job.request.get("created") or 0.0),
    )


def take_lock(path: Path, *, wait: bool = False) -> int | None:
    """A file descriptor that holds the lock, or None when another process does; close it to let go."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(fd)
        return None
    return fd


def write_json(path: Path, data: object) -> None:
    """Write JSON beside the target, sync it, and rename it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=True, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


@contextlib.contextmanager
def naming_the_folder(root: Path) -> Iterator[None]:
    """Turn the trouble of writing below `root` into a sentence that names it."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "free some space or set HFBENCH_HOME to another disk",
            errno.EDQUOT: "your quota is used up: set HFBENCH_HOME to another disk",
        }.get(error.errno or 0, "make it writable or set HFBENCH_HOME to a folder that is")
        raise JobsFolderError(
            f"the jobs folder cannot be written: {error.strerror}", where=root, remedy=remedy
        ) from error
