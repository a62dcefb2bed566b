"""How the workbench leaves a terminal and comes back to it: signals, ctrl+z, and faults of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import traceback

from rich.text import Text
from textual.app import App

from hfbench.errors import foreseen
from hfbench.paths import state_root
from hfbench.text import printable

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Signals after which the terminal is put back in order; the exit code says which it was."""

LAST_WORDS = 2.0
"""Seconds to put the terminal back in order after a signal."""

DEBUG = "HFBENCH_DEBUG"


class Leaving(App[None]):
    """An application that leaves its terminal as it found it, whatever ends it."""

    def listen_to_signals(self) -> None:
        """Be told to end, and paint again after having been stopped; to be called when the terminal is ours."""
        for number in ENDING:
            asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, number)
        self.app_resume_signal.subscribe(self, lambda _: self._resumed())

    def _told_to_end(self, number: int) -> None:
        """Leave the terminal as it was; one that is gone must not hold us."""
        gone = threading.Timer(LAST_WORDS, os._exit, (128 + number,))
        gone.daemon = True
        gone.start()
        self.exit(return_code=128 + number)

    def _resumed(self) -> None:
        """The terminal shows nothing of ours any more."""
        self.screen.refresh(layout=True)

    def _fatal_error(self) -> None:
        """A sentence in place of a traceback, which is kept in a file; HFBENCH_DEBUG shows it."""
        if os.environ.get(DEBUG) or self._exception is None:
            super()._fatal_error()
            return
        error = foreseen(self._exception, traceback=kept_traceback(self._exception))
        self._exit_renderables.append(Text(f"hfbench: {printable(str(error))}"))
        self._close_messages_no_wait()


def kept_traceback(error: BaseException) -> str:
    """Write the traceback to a file, and say where it can be read."""
    file = state_root() / "fault.log"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"{DEBUG}=1 shows the traceback"
    return f"{file} has the traceback; hfbench attach goes on where you were"
