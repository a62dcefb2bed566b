"""Blocking work in threads, which is always waited for: a file is not closed under a thread that writes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_a_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns. Cancelled, it first waits until the thread is done: the number of a closed file may be
    another file's by the time the thread writes."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def in_a_stoppable_thread(work: Callable[[Event], T]) -> T:
    """What the work returns, which looks at the event now and then. Cancelled, it sets it, and waits for the thread."""
    stop = Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)
        raise
