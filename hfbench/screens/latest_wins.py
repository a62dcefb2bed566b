"""One thread that answers the latest request: those that came while it worked are passed over, but for the last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from textual.message import Message
from textual.message_pump import MessagePump

from hfbench.errors import HfbenchError
from hfbench.screens.background import unforeseen

R = TypeVar("R")


class LatestWins(Generic[R]):
    """Turns requests into messages to one node, one after the other. The thread is a daemon and starts when needed.

    Every answer is posted, also that of a request which a later one has overtaken: it is newer than what is shown.
    An error that the deed raises becomes `trouble(error)`.
    """

    def __init__(
        self, node: MessagePump, deed: Callable[[R], Message], trouble: Callable[[HfbenchError], Message]
    ) -> None:
        self._node, self._deed, self._trouble = node, deed, trouble
        self._turn = threading.Condition()
        self._waiting: list[R] = []
        self._thread: threading.Thread | None = None
        self._stopped = False

    def ask(self, request: R) -> None:
        """Answer this as soon as the request under way is answered."""
        with self._turn:
            self._waiting[:] = [request]
            if self._thread is None and not self._stopped:
                work = copy_context().run
                self._thread = threading.Thread(target=work, args=(self._run,), daemon=True, name="hfbench-latest")
                self._thread.start()
            self._turn.notify()

    def stop(self) -> None:
        """Answer nothing more."""
        with self._turn:
            self._stopped = True
            self._waiting.clear()
            self._turn.notify()

    def _run(self) -> None:
        while (request := self._next()) is not None:
            try:
                message = self._deed(request)
            except HfbenchError as error:
                message = self._trouble(error)
            except Exception as error:  # one sentence on the screen instead of a traceback over it
                message = self._trouble(unforeseen(error))
            if self._stopped:
                return
            try:
                self._node.post_message(message)
            except RuntimeError:
                return  # the application's loop is closed: nobody is left to tell

    def _next(self) -> R | None:
        with self._turn:
            self._turn.wait_for(lambda: self._waiting or self._stopped)
            return None if self._stopped else self._waiting.pop()
