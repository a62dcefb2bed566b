"""One job's folder: names, atomic writes, the lock that tells whether its worker lives."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.files import open_regular, read_regular

ID = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[a-z0-9_.]+-[0-9a-f]{6}")
REQUEST_VERSION = 1
RESERVE_BYTES = 16 * 1024
"""Kept aside in each folder, so that a job on a full disk can still say why it failed."""
GRACE = 10.0
"""Seconds between asking a job to stop and killing it, unless its request says otherwise."""
GONE = 3.0
"""Seconds for which a job's folder has been away before it counts as removed: disks of other machines have lapses."""
SHOWN = 5
"""Ids told of jobs that a word could mean, the latest."""
KEPT_LOCK = "worker.lock"
"""Held by a worker whose job's lock its keeper holds: one that was given up may run on beside its successor."""
TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
"""What flock answers when another process holds the lock; anything else is trouble with the disk."""


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

    @property
    def newer(self) -> str:
        """That a newer hfbench wrote the request, so that some of it may be misread here; empty where none did."""
        version = self.request.get("v")
        if not isinstance(version, int) or version <= REQUEST_VERSION:
            return ""
        who = f" ({told})" if (told := self.request.get("hfbench")) else ""
        return f"a newer hfbench{who} wrote this job: this one may misread it"

    @property
    def grace(self) -> float:
        """Seconds this job is given to stop when it is asked to."""
        asked = self.request.get("grace")
        return number if (number := _finite(asked)) is not None and number >= 0 else GRACE

    @property
    def created(self) -> float:
        """When the job was asked for, in seconds since the epoch: by its request, else its name, else its folder."""
        if (told := _finite(self.request.get("created"))) is not None:
            return told
        try:
            return time.mktime(time.strptime(self.id[:19], "%Y-%m-%dT%H-%M-%S"))
        except (ValueError, OverflowError):
            pass  # a name in the right shape may still hold a 40th of May
        try:
            return self.path.stat().st_mtime
        except OSError:
            return time.time()

    def environment(self, part: str) -> str:
        """The `name` of the environment the worker was started in, or `why` hfbench chose it; empty without one."""
        told = self.request.get("environment")
        return str(told.get(part) or "") if isinstance(told, dict) else ""

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON file of the job; None when it is absent or not (yet) whole."""
        try:
            data = json.loads(read_regular(self.path / name))
        except (OSError, ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None

    def write(self, name: str, data: object) -> None:
        """Write a JSON file so that readers see all of it or nothing."""
        write_json(self.path / name, data)

    def alive(self) -> bool:
        """True while a worker, or the keeper of one, holds the lock."""
        return held(self.lock)


def create(root: Path, action: str, request: dict[str, Any], job_id: str = "") -> tuple[JobDirectory, int]:
    """Make the folder of a new job with its request: the job, and a descriptor that holds its lock.

    An id is given only to a job that has one elsewhere. Made under a hidden name and then renamed: whoever sees a job
    sees one that is whole and locked. JobsFolderError when the folder cannot be written.
    """
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    job = JobDirectory(root / (job_id or f"{stamp}-{action}-{secrets.token_hex(3)}"))
    unseen = JobDirectory(root / f".new-{job.id}")
    lock = None
    try:
        with naming_the_folder(root):
            (unseen.path / "artifacts").mkdir(parents=True)
            unseen.reserve.write_bytes(os.urandom(RESERVE_BYTES))  # zeros take no room on a disk that compresses
            unseen.events.touch()
            unseen.write("request.json", {"v": REQUEST_VERSION, "action": action, "created": time.time(), **request})
            lock = take_lock(unseen.lock)
            unseen.path.rename(job.path)
    except BaseException:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(unseen.path, ignore_errors=True)
        raise
    assert lock is not None, "nobody else knows the hidden name"
    return job, lock


def find_job(root: Path, wanted: str) -> JobDirectory:
    """The job with that id, or whose id or short id begins or ends with it; NoSuchJob when none or several do."""
    exact = JobDirectory(root / wanted)
    if ID.fullmatch(wanted) and exact.path.is_dir() and not exact.path.is_symlink():
        return exact
    if not wanted or "/" in wanted:
        raise NoSuchJob(f"{wanted!r} is not a job id", remedy="hfbench jobs list shows them")
    if wanted in ("last", "@"):
        if not (ids := job_ids(root)):
            raise NoSuchJob("there is no job yet", where=root)
        return _latest(root, ids)
    matches = [each for each in job_ids(root) if _may_mean(wanted, each)]
    if not matches:
        _refuse_pretenders(root, wanted)
        raise NoSuchJob(f"no job matches {wanted!r}", where=root, remedy="hfbench jobs list shows their ids")
    if len(matches) > 1:
        told = ", ".join(each.rpartition("-")[2] for each in matches[-SHOWN:])
        more = f" and {len(matches) - SHOWN} more" if len(matches) > SHOWN else ""
        raise NoSuchJob(f"{len(matches)} jobs match {wanted!r}: {told}{more}", where=root, remedy="type more of one")
    return JobDirectory(root / matches[0])


def job_ids(root: Path) -> list[str]:
    """Ids of all jobs below a root, oldest first; an absent root holds none. A link or a file is no job."""
    return _named_as_jobs(root, folders=True)


def _named_as_jobs(root: Path, *, folders: bool) -> list[str]:
    """Names that are job ids, of folders or of all that is none."""
    try:
        with os.scandir(root) as entries:
            named = [entry for entry in entries if ID.fullmatch(entry.name)]
            return sorted(entry.name for entry in named if entry.is_dir(follow_symlinks=False) is folders)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JobsFolderError(f"the jobs folder cannot be read: {error.strerror}", where=root) from error


def _refuse_pretenders(root: Path, wanted: str) -> None:
    """NoSuchJob that says why what has the name of a job is none."""
    for name in _named_as_jobs(root, folders=False):
        if _may_mean(wanted, name):
            what = "it is a link" if (root / name).is_symlink() else "it is not a folder"
            raise NoSuchJob(f"{name} is no job: {what}", where=root, remedy="remove it by hand")


def _may_mean(wanted: str, job_id: str) -> bool:
    """Whether somebody who types this may mean the job."""
    short_id = job_id.rpartition("-")[2]
    return job_id.startswith(wanted) or job_id.endswith(wanted) or short_id.startswith(wanted)


def _latest(root: Path, ids: list[str]) -> JobDirectory:
    """The newest of these jobs: ids tell the second, requests the moment."""
    second = ids[-1][:19]
    return max(
        (JobDirectory(root / each) for each in ids if each.startswith(second)),
        key=lambda job: job.created,
    )


def _finite(value: object) -> float | None:
    """A number of a JSON file as a float; None for what is none, or has no place in one."""
    try:
        number = float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def take_lock(path: Path, *, patience: float = 0.0) -> int | None:
    """A file descriptor that holds the lock, or None when another process does; close it to let go.

    Readers hold it for a moment while they look: `patience` is the seconds to try again. OSError when the
    disk knows no locks.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    end = time.monotonic() + patience
    try:
        while not try_lock(fd, fcntl.LOCK_EX):
            if time.monotonic() >= end:
                os.close(fd)
                return None
            time.sleep(0.01)
    except OSError:
        os.close(fd)
        raise
    return fd


def held(path: Path) -> bool:
    """True while another process holds the lock; an absent file is held by nobody."""
    try:
        fd = open_regular(path)
    except OSError:
        return False
    try:
        return not try_lock(fd, fcntl.LOCK_SH)
    except OSError:
        return False
    finally:
        os.close(fd)


def try_lock(fd: int, kind: int) -> bool:
    """True when an open file is locked now, False when another process holds it; other trouble is an OSError."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True


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
def naming_the_folder(root: Path, what: str = "the jobs folder") -> Iterator[None]:
    """Turn the trouble of writing below `root` into a sentence that names it."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "free some space or set HFBENCH_HOME to another disk",
            errno.EDQUOT: "your quota is used up: set HFBENCH_HOME to another disk",
        }.get(error.errno or 0, "make it writable or set HFBENCH_HOME to a folder that is")
        raise JobsFolderError(f"{what} cannot be written: {error.strerror}", where=root, remedy=remedy) from error
