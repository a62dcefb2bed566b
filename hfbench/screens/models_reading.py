"""What the threads behind the Models screen do: list the sources, and look at the models of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.screens.background import Stopped
from hfbench.screens.hub_asks import known_endpoints
from hfbench.screens.model_list import RECENT, SOURCES, Listing, Source, forget_recent, list_source
from hfbench.screens.model_look import Look, look_at

if TYPE_CHECKING:
    from hfbench.config import Config
    from hfbench.models.catalog import ModelEntry

EVERY = 0.1
"""Seconds between two repaints of the list while models are looked at."""

Post = Callable[[Message], None]


@dataclass
class Listed(Message):
    """The models of one source."""

    source: Source
    listing: Listing


@dataclass
class Looked(Message):
    """Models that were looked at, by folder; `over` with the last of a source."""

    looks: dict[str, Look]
    over: bool = False


@dataclass
class LookingFailed(Message):
    """The thread that lists or looks met an error."""

    error: HfbenchError


def list_sources(config: Config, used: Sequence[str], stopped: Stopped, post: Post) -> None:
    """Post what each source holds, and the hubs there are; `used` are the models of jobs."""
    for number, source in enumerate(SOURCES):
        if not stopped():
            post(Listed(source, list_source(source, config.models, used)))
        if not number:  # they are known before all is listed, and what is here comes first
            post(known_endpoints(config))


def forget_model(entry: ModelEntry, config: Config, used: Sequence[str], stopped: Stopped, post: Post) -> None:
    """Take a model off the recent ones, and post those that are left."""
    forget_recent(entry, used)
    post(Listed(RECENT, list_source(RECENT, config.models, used)))


def look_at_all(entries: Sequence[ModelEntry], stopped: Stopped, post: Post) -> None:
    """Look at models one after the other, and post them at a pace that can be painted."""
    fresh: dict[str, Look] = {}
    posted = monotonic()
    for entry in entries:
        if stopped():
            return
        fresh[str(entry.folder)] = look_at(entry)
        if monotonic() - posted >= EVERY:
            post(Looked(fresh))
            fresh, posted = {}, monotonic()
    post(Looked(fresh, over=True))
