"""A driver that a shell stops and lets go on: by the event loop, never from within a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class StopsFromLoop:
    """Stands before Textual's driver for Linux, whose handlers write to a queue from within the signal: one that comes
    while the same thread puts a line into it, and so holds its lock, would lock the workbench out."""

    _loop: asyncio.AbstractEventLoop
    _auto_restart: bool
    _must_signal_resume: bool
    """Textual's: set while it is stopped, until it has the terminal again."""
    suspend_application_mode: Callable[[], None]
    resume_application_mode: Callable[[], None]

    _continued = False
    """Whether it was let go on since it last did."""

    def _sigtstp_application(self, *_: Any) -> None:
        """Stop, but not from here."""
        if self._auto_restart:
            self._soon(self._stop)
        else:  # another program has the terminal, and nothing is written
            os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: Any) -> None:
        """Go on, also after a SIGSTOP, before which nothing could be put in order; not from here either."""
        self._continued = True
        self._soon(self._go_on)

    def _soon(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and the terminal is in order
            self._loop.call_soon_threadsafe(what)

    def _stop(self) -> None:
        self.suspend_application_mode()
        self._must_signal_resume = True
        os.kill(os.getpid(), signal.SIGSTOP)
        self._continued = True
        self._go_on()  # before anything is painted

    def _go_on(self) -> None:
        while self._continued:  # again, when it was stopped for going on in the background
            self._continued = False
            if not self._auto_restart:
                return
            if not self._must_signal_resume:
                self.suspend_application_mode()
                self._must_signal_resume = True
            self.resume_application_mode()
