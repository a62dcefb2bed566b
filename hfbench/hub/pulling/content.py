"""What a download works on: the wish, one content with its files, and the tally of what became of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hfbench.errors import HfbenchError
from hfbench.hub.facts import HubFile
from hfbench.hub.plan import AUTO
from hfbench.hub.pulling.fetch import PATIENCE
from hfbench.hub.pulling.locks import BlobLock
from hfbench.hub.pulling.partial import Partial


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What of a model is wanted, and how it is to be brought."""

    runtime: str = AUTO
    quant: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    connections: int = 8
    """Requests at a time."""
    patience: float = PATIENCE
    """Seconds without a byte after which it is given up."""
    verify: bool = False
    """Whether what is in the cache already is read, and fetched again where it is damaged."""


@dataclass(slots=True)
class Content:
    """One content and every file that has it. The lock is held from the beginning to the end of its download."""

    files: list[HubFile]
    lock: BlobLock
    partial: Partial
    stretches: deque[tuple[int, int]] = field(default_factory=deque)
    flying: int = 0
    restarts: int = 0
    whole: int = 0
    """How often it was asked for in one piece, because the hub sends no ranges."""

    @property
    def file(self) -> HubFile:
        """The first of its files; the others differ in their paths alone."""
        return self.files[0]


@dataclass(slots=True)
class Tally:
    """What became of the contents."""

    fetched: int = 0
    resumed_bytes: int = 0
    copied_bytes: int = 0
    """That another repository of the cache had."""
    from_others: int = 0
    """Contents that another process downloaded meanwhile."""
    restarted: list[str] = field(default_factory=list)


class WrongBytes(HfbenchError):
    """What a hub sent is not what it listed."""
