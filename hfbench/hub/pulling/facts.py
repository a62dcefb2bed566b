"""What a pull did, as plain records; light to import, for declarations of actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["here", "fetched", "wanted"]
"""Already in its place; brought by this pull; named by a dry run."""


@dataclass(frozen=True, kw_only=True)
class PulledFile:
    """One file of a pull, `bytes` long."""

    path: str
    bytes: int
    etag: str
    state: State


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """Files that were not wanted, by reason."""

    why: str
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """A model as it lies in a cache or a folder. `bytes` is of all its chosen files, `fetched_bytes` came over the
    network, `resumed_bytes` were left by an earlier run, `copied_bytes` another repository of the cache had."""

    model: str
    repo: str
    endpoint: str
    url: str
    revision: str
    commit: str
    folder: str
    runtime: str
    quant: str
    files: tuple[PulledFile, ...]
    skipped: tuple[Skipped, ...]
    bytes: int
    wanted_bytes: int
    """That were missing when it began."""
    fetched_bytes: int = 0
    resumed_bytes: int = 0
    copied_bytes: int = 0
    restarted: tuple[str, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False
    notes: tuple[str, ...] = ()
