"""A hub opened for work on its own machine, whether it is being served or not."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from hfbench.errors import UsageError
from hfbench.paths import registry_root
from hfbench.registry.database.trouble import in_words
from hfbench.registry.hub import Hub, open_hub
from hfbench.registry.presence import require_hub
from hfbench.registry.settings import Settings, read_settings

T = TypeVar("T")


def settings_of(folder: Path | None) -> Settings:
    """The settings of the hub in a folder, of this user's own hub where none is named; MissingError without a hub."""
    return read_settings(folder or registry_root())


def on_hub(settings: Settings, work: Callable[[Hub], Awaitable[T]]) -> T:
    """Do some work on the hub from a process without an event loop. HfbenchError when its key or database is gone."""

    async def run() -> T:
        hub = open_hub(settings)
        try:
            return await work(hub)
        finally:
            await hub.close()

    require_hub(settings)
    with in_words(settings.database_url):
        return asyncio.run(run())


def is_served(settings: Settings) -> bool:
    """Whether a server runs on the hub's folder. On PostgreSQL another machine may serve it all the same."""
    try:
        with settings.layout.lock.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def require_grace(settings: Settings, grace: float) -> None:
    """UsageError for a grace period that an upload which runs now could exceed."""
    least = 2.0 * settings.link_seconds
    if grace < least and (settings.database or is_served(settings)):
        raise UsageError(
            f"a grace period of {grace:g} s is shorter than uploads may take while the hub is served",
            remedy=f"give at least {least:g} s, or stop the server first",
        )
