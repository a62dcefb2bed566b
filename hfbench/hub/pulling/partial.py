"""A download under way: the file so far, and beside it a journal of the stretches that are there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
from pathlib import Path

from hfbench.errors import FULL, HfbenchError
from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.ranges import Ranges

VERSION = 1
PART, JOURNAL = ".hfbench.incomplete", ".hfbench.journal.incomplete"
"""Both end as the broken downloads of stock clients do: what looks after a cache takes them for such."""
MOST_JOURNAL = 4 << 20
"""Bytes of a journal that is read; one of ours has a line for some megabytes of the file."""


class Partial:
    """An open partial file. Writing is for any thread; a line of the journal follows the bytes it tells of.

    A process that is killed therefore loses no byte that the journal knows; what a loss of power takes is found by
    the hash of the whole.
    """

    def __init__(self, part: Path, journal: Path, file: HubFile) -> None:
        self.part, self.journal, self.file = part, journal, file
        self.there = Ranges()
        self.changed = threading.Condition()
        self.resumed = 0
        """Bytes that an earlier run left."""
        self._fd = self._log = -1

    def open(self, repo: str) -> int:
        """Open it, and take up what an earlier run left; the bytes of that. HfbenchError when the disk refuses."""
        try:
            return self._taken_up(repo)
        except OSError as error:
            self.close()
            raise self._refused(error) from None

    def _taken_up(self, repo: str) -> int:
        self.part.parent.mkdir(parents=True, exist_ok=True)
        self._fd = _opened(self.part)
        self.there = self._read_journal() if os.fstat(self._fd).st_size == self.file.size else Ranges()
        self._log = _opened(self.journal)
        if not self.there.total:
            os.ftruncate(self._log, 0)
            os.ftruncate(self._fd, 0)
            os.ftruncate(self._fd, self.file.size)
            head = {"version": VERSION, "etag": self.file.etag, "size": self.file.size}
            self._append(json.dumps(head | {"path": self.file.path, "repo": repo}))
        os.lseek(self._log, 0, os.SEEK_END)
        self._append("")  # a line that was cut off ends here
        self.resumed = self.there.total
        return self.resumed

    @property
    def fd(self) -> int:
        """The descriptor of the bytes."""
        return self._fd

    @property
    def whole(self) -> bool:
        """Whether every byte is there."""
        return self.there.prefix == self.file.size

    def write(self, data: memoryview, at: int) -> None:
        """Put bytes at their place; HfbenchError when the disk refuses."""
        try:
            while data:
                count = os.pwrite(self._fd, data, at)
                data, at = data[count:], at + count
        except OSError as error:
            raise self._refused(error) from None

    def note(self, start: int, end: int) -> None:
        """Write down that these bytes are there, for other threads and for a later run."""
        if start >= end:
            return
        with self.changed:
            try:
                self._append(f"{start} {end}")
            except OSError as error:
                raise self._refused(error) from None
            self.there.add(start, end)
            self.changed.notify_all()

    def close(self) -> None:
        """Close it; what is there stays for a later run."""
        for fd in (self._fd, self._log):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._fd = self._log = -1

    def remove(self) -> None:
        """Delete the file and its journal."""
        for path in (self.journal, self.part):
            with contextlib.suppress(OSError):
                path.unlink()

    def _refused(self, error: OSError) -> HfbenchError:
        """What a disk says, as a sentence."""
        if error.errno in FULL:
            found, remedy = "the disk is full", "free some space and pull again: it goes on where it stopped"
        elif error.errno == errno.EFBIG:
            found, remedy = "it is larger than a file may be here", "raise the limit (ulimit -f), or use another disk"
        else:
            found, remedy = f"it cannot be written ({error.strerror})", "look at the disk and its permissions"
        return HfbenchError(f"{self.file.path}: {found}", where=self.part.parent, remedy=remedy)

    def _append(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())

    def _read_journal(self) -> Ranges:
        """What the journal of an earlier run tells of this very file; nothing of another, or of a damaged one."""
        head, lines = read_journal(self.journal)
        if head.get("version") != VERSION or head.get("etag") != self.file.etag or head.get("size") != self.file.size:
            return Ranges()
        return ranges_of(lines, self.file.size)


def read_journal(path: Path) -> tuple[dict[str, object], list[str]]:
    """The head and the lines of a journal; nothing of what is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return {}, []
            text = file.read(MOST_JOURNAL).decode("ascii")
        first, *lines = text[: text.rfind("\n") + 1].splitlines()
        head = json.loads(first)
    except (OSError, ValueError, RecursionError):
        return {}, []
    return (head, lines) if isinstance(head, dict) else ({}, [])


def ranges_of(lines: list[str], size: int) -> Ranges:
    """The stretches that lines of a journal name, as far as they lie within the file."""
    found = Ranges()
    for line in lines:
        start, _, end = line.partition(" ")
        if start.isdigit() and end.isdigit() and len(line) < 64 and int(start) < int(end) <= size:
            found.add(int(start), int(end))
    return found


def _opened(path: Path) -> int:
    """A plain file for reading and writing, made with the permissions a new file gets; never what a link leads to."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(22, "it is no regular file", str(path))
