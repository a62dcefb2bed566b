"""Keys typed ahead go where they were meant to: over a slow line `/down` arrives in one piece."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump

PATIENCE = 1.0
"""Seconds after which a key whose widget vanished no longer holds up the next one."""

ANSWER = 0.02
"""Seconds from a key to its paint, at most."""

OPENING = 0.01
"""Seconds until a screen that is being opened is looked at again."""


class TypeAhead(App[None]):
    """An application that hands out one key at a time.

    Textual gives all keys of a burst to the widget that has the focus when they arrive, also when the first of them
    moves the focus. Here the second key waits until the first has had its effect.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._waiting: deque[events.Key] = deque()
        self._in_flight: events.Key | None = None
        self._since = 0.0

    @property
    def last_key(self) -> float:
        """When a key was last handed out (time.monotonic())."""
        return self._since

    @property
    def answering(self) -> bool:
        """True while the paint of the last key may still be under way; threads that read let it have the processor."""
        return time.monotonic() - self._since < ANSWER

    async def on_event(self, event: events.Event) -> None:
        """Queue fresh keys; a key that came back unused has its bindings run, and then the next one goes out."""
        if not isinstance(event, events.Key):
            await super().on_event(event)
        elif event.is_forwarded:
            await super().on_event(event)
            await self._landed(event)
        else:
            self._waiting.append(event)
            if self._in_flight is not None and time.monotonic() - self._since > PATIENCE:
                self._in_flight = None
            await self._send()

    async def _send(self) -> None:
        """Hand out keys until one is under way."""
        while self._waiting and self._in_flight is None:
            if self._is_opening():
                self.set_timer(OPENING, self._send)
                return
            key = self._in_flight = self._waiting.popleft()
            self._since = time.monotonic()
            target: MessagePump = self.focused or self.screen
            await super().on_event(key)
            if key.is_forwarded:
                self._follow(key, target)
            else:
                self._in_flight = None

    def _is_opening(self) -> bool:
        """What the key before opened, or asked for, is not there yet; what never comes does not hold the keys."""
        busy = not getattr(self.screen, "takes_keys", True) and time.monotonic() - self._since < PATIENCE
        return busy or not self.screen.is_mounted

    def _follow(self, key: events.Key, node: MessagePump) -> None:
        """Look again once the node has dealt with the key, which stands in its queue before us."""
        if not node.call_later(self._look, key, node):
            self._in_flight = None

    async def _look(self, key: events.Key, node: MessagePump) -> None:
        """A key a node kept has landed; one that went on to the parent is followed there, and ends in `on_event`."""
        parent = node._parent
        if key._stop_propagation or parent is None:
            self.call_later(self._landed, key)
        elif parent is not self and self._in_flight is key:
            self._follow(key, parent)

    async def _landed(self, key: events.Key) -> None:
        if self._in_flight is key:
            self._in_flight = None
            await self._send()
