"""Requests to stop a run: remembered while a job is followed, raised at once while an action runs in this process."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hfbench.exits import Exit


class Stopped(BaseException):
    """Raised inside an action of this process when the run must end; not an Exception, so that nobody swallows it."""


class TimeIsOver(BaseException):
    """Raised inside an action of this process when its step has run too long."""


class Stop:
    """Catches SIGINT, SIGTERM and SIGHUP between `with` and its end. `exit` is the code of the first one."""

    def __init__(self) -> None:
        self.exit: Exit | None = None
        self._raising = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # the only one that may set handlers
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signum is not signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:  # nohup
                    self._before[signum] = signal.signal(signum, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def asked(self) -> bool:
        """True once the run must end."""
        return self.exit is not None

    @contextlib.contextmanager
    def raising(self, timeout: float | None) -> Iterator[None]:
        """Inside, a request to stop raises Stopped, and TimeIsOver comes after `timeout` seconds; one of them, once."""
        timed = timeout is not None and threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, self._time_is_over) if timed else None
        try:
            self._raising = True
            if self.asked():
                raise Stopped
            if timed:
                signal.setitimer(signal.ITIMER_REAL, timeout or 0.0)
            yield
        finally:
            self._raising = False
            if timed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def _asked(self, signum: int, frame: FrameType | None) -> None:
        if self.exit is None:
            self.exit = Exit.INTERRUPTED if signum == signal.SIGINT else Exit.TERMINATED
            self._raise(Stopped())

    def _time_is_over(self, signum: int, frame: FrameType | None) -> None:
        self._raise(TimeIsOver())

    def _raise(self, reason: BaseException) -> None:
        if self._raising:
            self._raising = False
            raise reason
