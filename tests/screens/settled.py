"""Waiting until all that was asked of an application has happened and is painted, however little processor there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from hfbench.widgets.type_ahead import PATIENCE

LONGEST = 30.0
"""Seconds after which an application that never comes to rest is looked at as it is."""

SPINS = 50
"""Turns of the loop to wait for before a handler under way is taken for one that waits for something itself."""


async def settled(app: App[Any]) -> None:
    """Return once keys have landed, messages have arrived, also those they led to, and layout and paint are done.

    Threads, child processes and timers are not waited for: what they bring is waited for by `until`.
    """
    end, keys_land = monotonic() + LONGEST, monotonic() + 2 * PATIENCE
    while monotonic() < end and not app._exception:
        if app._exit:
            await _left(app, end)
            return
        await _passed(app, end)
        for screen in _in_view(app):
            if _is_due(screen):
                screen._on_timer_update()
        if getattr(app, "_waiting", ()) and monotonic() < keys_land:
            await asyncio.sleep(0.002)
        elif not any(map(_has_work, _nodes(app))):
            return


@pytest.fixture(autouse=True)
def deterministic_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pilot.press` and `pilot.pause` return when their effects are painted.

    Textual's own wait takes a process that gets no processor for one with nothing to do, and is slow besides.
    """

    async def idle(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
        await settled(active_app.get())

    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", idle)


async def _passed(app: App[Any], end: float) -> None:
    """Each node has dealt with what stands in its queue now."""
    left: set[MessagePump] = set()

    def dealt_with(node: MessagePump) -> None:
        left.discard(node)

    for node in _nodes(app):
        if not _waits(node) and node.call_later(dealt_with, node):
            left.add(node)
    spins = 0
    while left and monotonic() < end and not (app._exit or app._exception):
        await asyncio.sleep(0 if spins < SPINS else 0.002)
        spins += 1
        left.difference_update([node for node in left if node._closed or node._closing])


def _waits(node: MessagePump) -> bool:
    """It is a widget that has dealt with all it got and waits for more: asking it would cost more than looking."""
    queue = node._message_queue
    return isinstance(node, Widget) and queue.empty() and bool(queue.ready_event._waiters)


async def _left(app: App[Any], end: float) -> None:
    """The application takes no more messages: one that stands behind its end would be waited for in vain."""
    while not app._closed and monotonic() < end:
        await asyncio.sleep(0.002)


def _in_view(app: App[Any]) -> list[Screen[Any]]:
    """The screen in front and those that show through it."""
    return [app.screen, *app._background_screens] if app._screen_stack else []


def _nodes(app: App[Any]) -> Iterator[MessagePump]:
    yield app
    for screen in _in_view(app):
        yield from screen.walk_children(with_self=True)


def _has_work(node: MessagePump) -> bool:
    return bool(not node._message_queue.empty() or node._next_callbacks or (isinstance(node, Screen) and _is_due(node)))


def _is_due(screen: Screen[Any]) -> bool:
    """Textual would lay it out or paint it at the next tick; a screen behind another stays marked as unpainted."""
    if screen is not screen.app.screen:
        return screen._layout_required
    layout = screen._layout_required or screen._scroll_required or screen._recompose_required
    return bool(layout or screen._repaint_required or screen._dirty_widgets or screen._callbacks)
