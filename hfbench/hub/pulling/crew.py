"""Many files at a time, large ones in stretches: hands that fetch, judges that hash, one thread that decides."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hfbench.hub.caching.locks import read_lock
from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.content import Content, Tally, Wish, WrongBytes
from hfbench.hub.pulling.copying import copy_into
from hfbench.hub.pulling.fetch import Fetcher, NoRanges, Source
from hfbench.hub.pulling.gauge import Gauge
from hfbench.hub.pulling.hands import Hands
from hfbench.hub.pulling.judge import digest_as_it_comes
from hfbench.hub.pulling.locks import BlobLock
from hfbench.hub.pulling.partial import Partial
from hfbench.hub.pulling.places import Place
from hfbench.hub.refusals import HubError
from hfbench.units import show_bytes

STRETCH = 64 << 20
"""Bytes one request asks for; a file of no more is fetched whole."""
MOST_WHOLE = 5
TICK = 0.1
LONG = 5.0
"""Seconds after which it is said for whom a file waits."""
LEAVE = 1.0
"""Seconds in which threads may end when a download is given up; they are daemons."""


@dataclass(frozen=True, slots=True)
class _Done:
    """What a thread reports: the part of the work, and how it failed, if it did."""

    content: Content
    digest: str | None = None
    copied: int = 0
    error: BaseException | None = None


class Crew:
    """Downloads contents of one commit into a place. `say` gets sentences for people, with the level of a log."""

    def __init__(self, place: Place, source: Source, gauge: Gauge, wish: Wish, say: Callable[[str, str], None]) -> None:
        self.place, self.gauge, self.repo, self.say = place, gauge, source.repo, say
        self.tally = Tally()
        self._fetcher = Fetcher(source, gauge.came, self.unwanted, wish.patience)
        self._hands = wish.connections
        self._stopped = threading.Event()
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        self._active: list[Content] = []
        self._waiting: deque[list[HubFile]] = deque()
        self._waits: dict[str, float] = {}

    def unwanted(self) -> bool:
        """Whether the download was given up."""
        return self._stopped.is_set()

    def bring(self, files: Sequence[HubFile]) -> Tally:
        """Download what the files hold and put each into its place; the first error ends it, and what came stays."""
        grouped: dict[str, list[HubFile]] = defaultdict(list)
        for each in files:
            grouped[each.etag].append(each)
        self._waiting = deque(sorted(grouped.values(), key=lambda same: (same[0].size > STRETCH, same[0].path)))
        self._fetching = Hands(min(self._hands, _requests(grouped.values())))
        self._hashing = Hands(min(4, os.cpu_count() or 1, max(1, len(grouped))))
        try:
            while self._waiting or self._active:
                self._hand_out()
                with contextlib.suppress(queue.Empty):
                    self._settle(self._done.get(timeout=TICK))
                self.gauge.report()
        finally:
            self._leave()
        self.gauge.report(last=True)
        return self.tally

    def _hand_out(self) -> None:
        """Give every free hand a stretch: of a file under way, else of the next one whose lock is free."""
        while sum(each.flying for each in self._active) < self._hands:
            content = next((each for each in self._active if each.stretches), None) or self._next()
            if content is None:
                return
            if content.stretches:
                start, end = content.stretches.popleft()
                content.flying += 1
                self._fetching.give(partial(self._fetch, content, start, end))

    def _next(self) -> Content | None:
        """The next content that nobody else downloads, opened; None when there is none, or enough are open."""
        if len(self._active) >= self._hands + 4:
            return None
        for _ in range(len(self._waiting)):
            files = self._waiting.popleft()
            content = self._begin(files)
            if content is not None:
                self._active.append(content)
                return content
        return None

    def _begin(self, files: list[HubFile]) -> Content | None:
        file = files[0]
        lock = BlobLock(self.place.lock(file))
        if not lock.take():
            self._tell_wait(file, lock)
            self._waiting.append(files)
            return None
        if lock.soft:
            self._note(
                "this file system has no flock: lock files stand in, and one of a killed process may stay behind"
            )
        try:
            if self.place.holds(file) or self.place.has(file):  # another process was quicker
                self._put(files)
                self.gauge.take_up(file, file.size)
                self.tally.from_others += 1
                lock.release()
                return None
            content = Content(files, lock, Partial(*self.place.part(file), file))
            self._open(content)
        except BaseException:
            lock.release()
            raise
        return content

    def _open(self, content: Content) -> None:
        """Open the partial, divide what is missing, and set a judge to follow it."""
        if (there := content.partial.open(self.repo)) and not content.restarts:
            self.tally.resumed_bytes += there
            self.say(
                f"{content.file.path}: goes on after {show_bytes(there)} of {show_bytes(content.file.size)}", "info"
            )
        self.gauge.take_up(content.file, there)
        source = None if there or content.restarts else self.place.elsewhere(content.file)
        if source is None:
            self._divide(content)
        else:
            content.flying += 1
            self._fetching.give(partial(self._copy, content, source))
        self._hashing.give(partial(self._judge, content, content.partial))

    def _divide(self, content: Content) -> None:
        content.stretches = deque(content.partial.there.gaps(content.file.size, STRETCH))

    def _copy(self, content: Content, source: Path) -> None:
        def came(count: int) -> None:
            self.gauge.take_up(content.file, count)

        brought = content.partial
        try:
            brought.resumed = copy_into(brought, source, came=came, unwanted=self.unwanted)
            self._done.put(_Done(content, copied=brought.resumed))
        except BaseException as error:
            self._done.put(_Done(content, error=error))

    def _fetch(self, content: Content, start: int, end: int) -> None:
        try:
            self._fetcher.fetch(content.partial, start, end)
            self._done.put(_Done(content))
        except BaseException as error:
            self._done.put(_Done(content, error=error))

    def _judge(self, content: Content, follows: Partial) -> None:
        try:
            digest = digest_as_it_comes(follows, self.unwanted)
            if digest == content.file.etag:
                os.fsync(follows.fd)
            self._done.put(_Done(content, digest=digest))
        except BaseException as error:
            self._done.put(_Done(content, digest="", error=error))

    def _settle(self, done: _Done) -> None:
        """Take a report in: an error ends everything, the hash of a file publishes it."""
        content = done.content
        if done.digest is None:
            content.flying -= 1
        if isinstance(done.error, NoRanges):
            content.stretches.clear()
            content.whole = content.whole or 1
        elif done.error is not None:
            raise done.error
        self.tally.copied_bytes += done.copied
        if done.digest is not None:
            self._published(content, done.digest)
        elif content.partial.whole or content.flying or content.stretches:
            pass
        elif not content.whole:
            self._divide(content)
        else:
            self._in_one_piece(content)

    def _in_one_piece(self, content: Content) -> None:
        """Ask for a file whose hub sends no ranges from its first byte; what is written once more is the same."""
        if content.whole > MOST_WHOLE:
            raise HubError(
                f"the hub sends no parts of files, and broke off the whole {MOST_WHOLE} times",
                where=content.file.path,
                remedy="try again on a calmer network, or through another endpoint",
            )
        self.say(f"{content.file.path}: the hub sends no parts of files, so it starts anew", "warning")
        self.gauge.take_up(content.file, -content.partial.there.total)
        content.whole += 1
        content.stretches.append((0, content.file.size))

    def _published(self, content: Content, digest: str) -> None:
        file, brought = content.file, content.partial
        if digest != file.etag:
            if brought.resumed and not content.restarts:
                self._again(content)
                return
            brought.close()
            brought.remove()
            kind = "sha256" if file.sha256 else "git id"
            raise WrongBytes(
                f"the hub sent wrong bytes: the {kind} is {digest}, not {file.etag}",
                where=file.path,
                remedy="nothing of it was kept; pull again, and if it stays so ask whoever runs the hub",
            )
        brought.close()
        self.place.publish(brought.part, file)
        brought.remove()
        self._put(content.files)
        content.lock.release()
        self._active.remove(content)
        self.tally.fetched += 1

    def _again(self, content: Content) -> None:
        """Begin a file once more: what an earlier run or another repository had of it is not the file's."""
        self.say(f"{content.file.path}: what was here of it already is damaged, so it starts anew", "warning")
        self.tally.restarted.append(content.file.path)
        old = content.partial
        self.gauge.take_up(content.file, -old.there.total)
        old.close()
        old.remove()
        content.partial = Partial(old.part, old.journal, content.file)
        content.restarts += 1
        self._open(content)

    def _put(self, files: Sequence[HubFile]) -> None:
        for each in files:
            self.place.put(each, files[0])
        for note in self.place.notes:
            self._note(note)

    def _note(self, text: str) -> None:
        if text not in self._waits:
            self._waits[text] = 0.0
            self.say(text, "warning")

    def _tell_wait(self, file: HubFile, lock: BlobLock) -> None:
        """Say once for whom a file waits."""
        now, key = time.monotonic(), f"lock {file.etag}"
        since = self._waits.setdefault(key, now)
        if since and now - since > LONG:
            held = read_lock(lock.path)
            who = held.owner if held else "somebody"
            remedy = "; hfbench cache free --orphans removes it" if held and held.state == "stale" else ""
            self.say(f"{file.path}: waits for its lock, which {who} holds{remedy}", "warning")
            self._waits[key] = 0.0

    def _leave(self) -> None:
        """Stop the threads, close what is open, let every lock go."""
        self._stopped.set()
        every = (self._fetching, self._hashing)
        for each in every:
            each.stop()
        until = time.monotonic() + LEAVE
        idle = all(each.ended(until) for each in every)
        for content in self._active:
            if idle:  # a thread that is still writing keeps its descriptor, and the lock with it
                content.partial.close()
                content.lock.release()


def _requests(contents: Iterable[list[HubFile]]) -> int:
    """How many requests the contents take at the least."""
    return max(1, sum(-(-max(same[0].size, 1) // STRETCH) for same in contents))
