"""What lies in a Hugging Face cache, as plain records; light to import, for declarations and screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["model", "dataset", "space"]


@dataclass(frozen=True, kw_only=True)
class CacheRevision:
    """One snapshot. `own_bytes` would be freed with it; times are seconds since the epoch."""

    commit: str
    refs: tuple[str, ...]
    files: int
    bytes: int
    own_bytes: int
    broken: tuple[str, ...]
    """Links that lead nowhere."""
    last_used: float


@dataclass(frozen=True, kw_only=True)
class BrokenDownload:
    """A download that was cut short. One of `hfbench pull` is gone on with by the next pull, any other by nobody."""

    path: str
    bytes: int
    resumable: bool
    file: str
    """What it was to become, where that is known."""
    changed: float


@dataclass(frozen=True, kw_only=True)
class Unnamed:
    """A blob that no snapshot links to."""

    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock that somebody holds, or a marker that a dead process left behind."""

    path: str
    state: Literal["held", "stale", "unknown"]
    """`unknown`: of another machine, where this one cannot see whether its owner lives."""
    owner: str


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """A blob whose content is not what its name says, or that cannot be read."""

    path: str
    text: str
    files: tuple[str, ...]
    """Files of snapshots that are it."""


@dataclass(frozen=True, kw_only=True)
class CachedRepo:
    """One repository. `bytes` lie on disk, `store_bytes` of them in the store of the cache; `shared_bytes` is what its
    revisions would take beyond that, were nothing shared."""

    kind: Kind
    repo: str
    path: str
    bytes: int
    store_bytes: int
    shared_bytes: int
    revisions: tuple[CacheRevision, ...]
    unnamed: tuple[Unnamed, ...]
    broken_downloads: tuple[BrokenDownload, ...]
    last_used: float

    @property
    def orphan_bytes(self) -> int:
        """Bytes that no snapshot uses and no pull goes on with."""
        dead = sum(each.bytes for each in self.broken_downloads if not each.resumable)
        return dead + sum(each.bytes for each in self.unnamed)


@dataclass(frozen=True, kw_only=True)
class SharedStore:
    """Contents that stock clients keep once for all repositories; `unused_bytes` no blob links to."""

    path: str
    contents: int
    bytes: int
    unused_bytes: int


@dataclass(frozen=True, kw_only=True)
class CacheReport:
    """A whole cache; `bytes` counts what repositories share through the store once."""

    folder: str
    repos: tuple[CachedRepo, ...]
    bytes: int
    locks: tuple[Lock, ...]
    idle_locks: int
    """Lock files that nobody holds: clients never delete them, and they are empty."""
    strange: tuple[str, ...]
    """Entries that belong to no repository."""
    store: SharedStore | None = None
    verified: int | None = None
    """Blobs whose hash was compared; None where that was not asked for."""
    unverifiable: int = 0
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Freed:
    """Something that was removed, or would be."""

    what: str
    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Spared:
    """Something that was to be removed and was not, with the reason."""

    what: str
    why: str
