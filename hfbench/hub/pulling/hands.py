"""Daemon threads that do tasks one after the other, and are left behind where they do not end in time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

Task = Callable[[], None]


class Hands:
    """So many threads for one queue of tasks. A task that is never begun is never missed."""

    def __init__(self, count: int) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def give(self, task: Task) -> None:
        """Have a task done by the next thread that is free."""
        self._tasks.put(task)

    def stop(self) -> None:
        """Begin no task any more."""
        self._stopped.set()
        for _ in self._threads:
            self._tasks.put(None)

    def ended(self, until: float) -> bool:
        """Wait for all threads until a moment (time.monotonic); whether all of them ended."""
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopped.is_set():
            task()
