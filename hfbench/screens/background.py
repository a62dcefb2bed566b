"""Reading beside the screen: one thread at a time, asked to stop when its answer is no longer wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

from textual.message import Message
from textual.message_pump import MessagePump

from hfbench.errors import HfbenchError
from hfbench.text import printable

Stopped = Callable[[], bool]
"""True once the answer is no longer wanted."""


class Background:
    """Runs deeds whose answers are messages to one node. Threads are daemons: a hung disk must not hold the exit.

    A deed gets `stopped` and `post`; what it posts after it was asked to stop goes nowhere. An error it raises,
    foreseen or not, becomes `trouble(error)`.
    """

    def __init__(self, node: MessagePump, trouble: Callable[[HfbenchError], Message]) -> None:
        self._node, self._trouble = node, trouble
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """True while the latest deed runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, deed: Callable[[Stopped, Callable[[Message], None]], None]) -> None:
        """Ask the deed under way to stop, and begin this one."""
        self.stop()
        stop = self._stop = threading.Event()

        def post(message: Message) -> None:
            if not stop.is_set():
                self._node.post_message(message)

        def run() -> None:
            try:
                deed(stop.is_set, post)
            except HfbenchError as error:
                _told(post, self._trouble(error))
            except Exception as error:  # one sentence on the screen instead of a traceback over it
                _told(post, self._trouble(unforeseen(error)))

        self._thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True, name="hfbench-reading")
        self._thread.start()

    def stop(self) -> None:
        """The answer is no longer wanted."""
        self._stop.set()


def unforeseen(error: Exception) -> HfbenchError:
    """An error nobody thought of, as one sentence of bounded length."""
    found = f"unforeseen {type(error).__name__}: {printable(str(error)[:200])}"
    return HfbenchError(found, remedy="please report this")


def _told(post: Callable[[Message], None], message: Message) -> None:
    try:
        post(message)
    except RuntimeError:
        return  # the application's loop is closed: nobody is left to tell
