"""Asks the cache's actions in child processes for the screens: what lies there, what freeing would free, files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError, Interrupted, UsageError
from hfbench.screens.background import Stopped
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.messages import Latest
from hfbench.widgets.cache_rows import KnownCache

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.actions.aside import Aside
    from hfbench.actions.cache_free import FreeResult
    from hfbench.actions.files import FilesResult

FREE = "cache.free"

Post = Callable[[Message], None]


@dataclass
class CacheListed(Latest):
    """The cache, or why it could not be read."""

    known: KnownCache | None = None
    error: HfbenchError | None = None


@dataclass
class FreePlanned(Message):
    """What a request would free, asked without freeing it."""

    values: Mapping[str, object]
    plan: FreeResult | None = None
    error: HfbenchError | None = None


@dataclass
class FilesShown(Message):
    """The files of a revision by its folder, or why they could not be listed."""

    folder: str
    shown: FilesResult | None = None
    error: HfbenchError | None = None


def list_cache(stopped: Stopped, post: Post) -> None:
    """Post what lies in the cache and the room on its disk."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            report = aside.ask("cache", {}, stopped)
        except Interrupted:
            return
    post(CacheListed(KnownCache(report=report, free_bytes=_room(report.folder))))


def plan_free(values: Mapping[str, object], within: str, stopped: Stopped, post: Post) -> None:
    """Post what would be freed; an error where that would lie outside the folder `within`, unless that is empty."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            plan = aside.ask(FREE, {**values, "dry_run": True}, stopped)
        except Interrupted:
            return
        except HfbenchError as error:
            post(FreePlanned(values, error=error))
            return
    for each in plan.freed:
        if within and each.path != within and not each.path.startswith(f"{within}/"):
            post(FreePlanned(values, error=another(within, each.path)))
            return
    post(FreePlanned(values, plan))


def another(wanted: str, found: str) -> HfbenchError:
    """A model and a dataset of one name: the name alone frees the model."""
    return UsageError(
        f"its name is also that of {os.path.basename(found)}, which would be freed in its place",
        where=wanted,
        remedy="remove the folder itself while nothing uses it",
    )


def _room(folder: str) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


class FileReader:
    """Lists the files of the revision asked for last; its child stays for the next one."""

    def __init__(self, screen: MessagePump) -> None:
        self._aside: Aside | None = None
        self._gone = False
        self._reading = LatestWins(screen, self._show, lambda error: FilesShown("", error=error))

    def show(self, folder: str) -> None:
        """`FilesShown` follows, unless another folder is asked for meanwhile."""
        self._reading.ask(folder)

    def stop(self) -> None:
        """Nobody looks any more."""
        self._gone = True
        self._reading.stop()
        if self._aside is not None:
            self._aside.close()

    def _show(self, folder: str) -> Message:
        """In the thread of answers."""
        from hfbench.actions.aside import Aside

        self._aside = self._aside or Aside()
        try:
            return FilesShown(folder, self._aside.ask("files", {"model": folder}, lambda: self._gone))
        except HfbenchError as error:
            return FilesShown(folder, error=error)
