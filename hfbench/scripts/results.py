"""Where the results of a run go: one JSON object a line, each written whole and at once."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import select
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hfbench.codec import encode
from hfbench.errors import HfbenchError, UsageError

VERSION = 1
MOST_ITEMS = 256
"""Items of a list or an object that are written whole."""
MOST_CHARACTERS = 4096
"""Characters of a text that are written whole."""


class Results:
    """Writes lines to a descriptor. A reader that goes away or a full disk ends the run; neither raises here."""

    def __init__(self, fd: int, where: object = "standard output") -> None:
        self.fd, self.where = fd, where
        self.gone = False
        """The reader is gone: nothing more is written, and nothing is said about it."""
        self.failure: HfbenchError | None = None
        self._poll = select.poll()
        self._poll.register(fd, 0)

    def write(self, event: str, **fields: Any) -> None:
        """Write one event."""
        data = encode({"event": event, "at": time.time(), **fields})
        rest = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        try:
            while rest and not self.ended():
                rest = rest[os.write(self.fd, rest) :]
        except BrokenPipeError:
            self.gone = True
        except OSError as error:
            self.failure = HfbenchError(f"the results cannot be written: {error.strerror}", where=self.where)

    def ended(self) -> bool:
        """True when nothing more can be written."""
        if not self.gone and any(flags & (select.POLLERR | select.POLLNVAL) for _, flags in self._poll.poll(0)):
            self.gone = True
        return self.gone or self.failure is not None


@contextlib.contextmanager
def open_results(path: Path | None, script: Path, *, nowhere: bool = False) -> Iterator[Results]:
    """Results in a file, or on stdout, or `nowhere`; UsageError when the file cannot be written or is the script."""
    if path is None and nowhere:
        fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    elif path is None:
        if sys.__stdout__ is None:  # the descriptor may belong to any file by now
            raise UsageError("standard output is closed", remedy="write the results with --results FILE")
        fd = os.dup(1)
    else:
        fd = _open_file(path, script)
    try:
        yield Results(fd, path or "standard output")
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


def condensed(value: Any) -> Any:
    """A result for one line: raw samples are left out, and what is too long is told by its length and hash."""
    if isinstance(value, Mapping):
        if len(value) > MOST_ITEMS:
            return {"left_out": len(value), "sha256": _digest(value)}
        return {key: condensed(item) for key, item in value.items() if key != "samples"}
    if isinstance(value, list):
        if len(value) > MOST_ITEMS:
            return {"left_out": len(value), "sha256": _digest(value)}
        return [condensed(item) for item in value]
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return {"left_out": len(value), "sha256": _digest(value)}
    return value


def _digest(value: Any) -> str:
    """The same for equal data, so that two runs can be compared without it."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


def _open_file(path: Path, script: Path) -> int:
    try:
        if path.exists() and path.samefile(script):
            raise UsageError("the results would overwrite the script", where=path, remedy="name another file")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            reason = "nobody reads this FIFO"
        raise UsageError(
            f"the results cannot be written: {reason}", where=path, remedy="name a file in a writable folder"
        ) from None
    os.set_blocking(fd, True)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.ftruncate(fd, 0)
    return fd
