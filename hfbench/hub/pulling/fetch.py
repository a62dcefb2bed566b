"""Fetches one stretch of a file into its partial, again and again while bytes come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hfbench.hub.client import HubClient
from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.judge import Unwanted
from hfbench.hub.pulling.partial import Partial
from hfbench.hub.refusals import Busy, HubError, Unreachable

NOTED = 4 << 20
"""Bytes after which the journal learns of them: as much a kill may cost each connection."""
WAITS = (0.2, 0.5, 1, 2, 4, 8)
"""Seconds before the next try; the last one is kept."""
PATIENCE = 60.0
"""Seconds without a byte after which a stretch is given up."""


class NoRanges(Exception):
    """The hub sends whole files only."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where bytes come from: one commit of a repository."""

    client: HubClient
    repo: str
    commit: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """What all stretches of a download share. `came` is told bytes as they are written."""

    source: Source
    came: Callable[[HubFile, int], None]
    unwanted: Callable[[], bool]
    patience: float = PATIENCE

    def fetch(self, partial: Partial, start: int, end: int) -> None:
        """Bring `[start, end)` into a partial.

        HubError when the hub refuses or nothing comes for `patience` seconds, NoRanges when it sends no part of a
        file, HfbenchError when the disk is full, Unwanted when the download was given up.
        """
        tries, last = 0, time.monotonic()
        while start < end:
            try:
                at = self._once(partial, start, end)
                failure: HubError | None = None
            except (Busy, Unreachable) as error:
                at, failure = _reached(partial, start, end), error
            if at > start:
                tries, last, start = 0, time.monotonic(), at
                continue
            now = time.monotonic()
            if failure is None:
                failure = HubError("the hub ends the file too early", where=partial.file.path, remedy="try again later")
            wait = WAITS[min(tries, len(WAITS) - 1)]
            if isinstance(failure, Busy) and failure.after is not None:
                wait = max(wait, failure.after)
            if now + wait - last > self.patience:
                raise failure
            tries += 1
            self._sleep(wait)

    def _once(self, partial: Partial, start: int, end: int) -> int:
        """One request; the byte it came to."""
        file, source = partial.file, self.source
        whole = start == 0 and end == file.size
        opened = source.client.read_file(source.repo, source.commit, file.path, start=start, end=None if whole else end)
        with opened as stream:
            _same(stream.etag, file)
            if stream.total is not None and stream.total != file.size:
                found = f"the hub lists {file.size:,} bytes and sends a file of {stream.total:,}"
                raise HubError(found, where=file.path, remedy="ask whoever runs it; nothing of it was kept")
            # What is raised in here would be told as a fault of the hub, so that it is raised behind.
            no_ranges = stream.start != start
            at = start if no_ranges else self._taken(partial, stream.chunks(end - start), start)
        if no_ranges:
            raise NoRanges
        if self.unwanted():
            raise Unwanted
        return at

    def _taken(self, partial: Partial, pieces: Iterable[bytes], start: int) -> int:
        """Write pieces as they come until the last, or until nobody wants them; the byte after the last one."""
        at = noted = start
        try:
            for piece in pieces:
                partial.write(memoryview(piece), at)
                at += len(piece)
                self.came(partial.file, len(piece))
                if at - noted >= NOTED:
                    partial.note(noted, at)
                    noted = at
                if self.unwanted():
                    break
        finally:
            partial.note(noted, at)
        return at

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.unwanted():
                raise Unwanted
            time.sleep(min(left, 0.1))


def _reached(partial: Partial, start: int, end: int) -> int:
    """The first byte from `start` on that is not there."""
    with partial.changed:
        return min(end, next((stop for begin, stop in partial.there if begin <= start < stop), start))


def _same(etag: str, file: HubFile) -> None:
    """HubError when the hub says that it sends another content than it listed."""
    looks_like_one = len(etag) == len(file.etag) and set(etag) <= set("0123456789abcdef")
    if looks_like_one and etag != file.etag:
        found = f"the hub lists the content {file.etag[:12]} and sends {etag[:12]}"
        raise HubError(found, where=file.path, remedy="pull again; if it stays, ask whoever runs the hub")
