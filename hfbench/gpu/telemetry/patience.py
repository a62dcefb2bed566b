"""Calls that may never return: made on daemon threads, one at a time, and left alone when they take too long."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue

SHORT = 0.2
"""Seconds a call may take once another one of the same round has not returned: the driver is sick."""
MOST_STUCK = 2
"""Calls of one group that may hang at a time. A third is not tried: every one costs a thread."""

Key = tuple[object, str]
"""Group (a card, or the session) and name of a call."""


@dataclass(frozen=True, slots=True)
class Task:
    """One call, which keeps its own outcome and never raises."""

    key: Key
    call: Callable[[], object]


class Patience:
    """Makes calls and waits for each at most `limit` seconds; one that is late is not made again until it returns."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._late: dict[Key, float] = {}
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[_Round | None] | None = None

    def run(self, tasks: Iterable[Task], limit: float | None = None) -> None:
        """Make the calls in their order. Returns when all have returned or are late; one round at a time."""
        waiting = self._allowed(tasks)
        patience = self.limit if limit is None else limit
        while waiting:
            waiting = self._allowed(self._round(waiting, patience))
            patience = min(patience, SHORT)

    def late(self, group: object) -> dict[str, float]:
        """Calls of a group that have not returned, and for how many seconds."""
        now = time.monotonic()
        with self._lock:
            return {name: now - since for (each, name), since in self._late.items() if each == group}

    @property
    def stuck(self) -> bool:
        """True while any call has not returned."""
        return bool(self._late)

    def close(self) -> None:
        """Let the thread end; those that hang end when their call returns."""
        if self._inbox is not None:
            self._inbox.put(None)
            self._inbox = None

    def _allowed(self, tasks: Iterable[Task]) -> list[Task]:
        with self._lock:
            if not self._late:
                return list(tasks)
            hanging = [group for group, _ in self._late]
            return [task for task in tasks if task.key not in self._late and hanging.count(task.key[0]) < MOST_STUCK]

    def _round(self, tasks: list[Task], limit: float) -> list[Task]:
        """Make calls until one is late; those that were not made."""
        if self._inbox is None:
            self._inbox = SimpleQueue()
            thread = threading.Thread(target=self._work, args=(self._inbox,), daemon=True, name="hfbench-nvml")
            thread.start()
        current = _Round(tasks)
        self._inbox.put(current)
        while not current.done.wait(max(0.001, limit - current.running())):
            if current.running() < limit:
                continue
            with current.lock:
                if current.key is None or current.running() < limit:
                    continue  # it returned just now
                with self._lock:
                    self._late[current.key] = current.since
                current.abandoned = True
                rest = list(current.tasks)
                current.tasks.clear()
            self._inbox = None  # its thread ends when the call returns
            return rest
        return []

    def _work(self, inbox: SimpleQueue[_Round | None]) -> None:
        while (current := inbox.get()) is not None:
            current.make(self._returned)
            if current.abandoned:
                return

    def _returned(self, key: Key) -> None:
        with self._lock:
            self._late.pop(key, None)


class _Round:
    """Tasks on their way through one thread."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.tasks = deque(tasks)
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.abandoned = False
        self.key: Key | None = None
        self.since = time.monotonic()

    def running(self) -> float:
        """Seconds since the call in flight began."""
        return time.monotonic() - self.since

    def make(self, returned: Callable[[Key], None]) -> None:
        """Make the calls; the one during which nobody waited any longer is only said to have returned."""
        while True:
            with self.lock:
                if self.abandoned and self.key is not None:
                    returned(self.key)
                    return
                if not self.tasks:
                    self.key = None
                    break
                task = self.tasks.popleft()
                self.key, self.since = task.key, time.monotonic()
            task.call()
        self.done.set()
