"""What looking after a hub found and did, as plain records; light to import, for declarations of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Tell = Callable[[str, float, float | None, str], None]
"""Told the phase, how far it is, of how much, and the unit."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where content is a file: repository, path, and a commit that has it there, with the names of its refs."""

    repo: str
    path: str
    commit: str
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Damage:
    """Content that is not as it should be. `what` is blob, xorb, cache, tree, ref or hold."""

    what: str
    name: str
    found: str
    places: tuple[Place, ...] = ()
    more_places: int = 0
    mended: str = ""
    """What `repair` did about it; empty when nothing."""
    lost: bool = True
    """Whether somebody who asks for it gets an error, even after the repair."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked at."""

    repos: int
    commits: int
    blobs: int
    xorbs: int
    bytes_read: int
    damages: tuple[Damage, ...]
    orphans: int
    orphan_bytes: int


@dataclass(frozen=True, slots=True)
class Swept:
    """What was removed, or would be: rows of the database by kind, files, and their bytes."""

    commits: int
    trees: int
    blobs: int
    xorbs: int
    files: int
    bytes: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class NamespaceUse:
    """What a namespace takes up, each blob counted once; `quota` is 0 where there is none."""

    name: str
    repos: int
    bytes: int
    quota: int


@dataclass(frozen=True, slots=True)
class RepoUse:
    """What a repository takes up in all of its revisions; what it shares with others counts in each."""

    kind: str
    name: str
    private: bool
    commits: int
    bytes: int
    downloads: int


@dataclass(frozen=True, slots=True)
class Use:
    """A hub in numbers. `told_bytes` is what repositories hold, `kept_bytes` what lies in the store for it."""

    folder: str
    database: str
    storage: str
    serving: bool
    repos: int
    commits: int
    users: int
    tokens: int
    blobs: int
    told_bytes: int
    kept_bytes: int
    blob_bytes: int
    xorb_bytes: int
    cache_bytes: int
    upload_bytes: int
    damaged_bytes: int
    free_bytes: int
    namespaces: tuple[NamespaceUse, ...]
    largest: tuple[RepoUse, ...]

    @property
    def saved(self) -> float:
        """How many bytes of repositories one byte of the store holds; 0 where nothing is kept."""
        return self.told_bytes / self.kept_bytes if self.kept_bytes else 0.0


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A copy of a hub: files by how they came there, and what the database names and the folder lacks."""

    folder: str
    files: int
    bytes: int
    linked: int
    cloned: int
    copied: int
    known: int
    """Files that lay there from an earlier backup."""
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportedRepo:
    """A repository that was brought in, with the revisions it has now."""

    kind: str
    name: str
    revisions: tuple[str, ...]
    files: int
    bytes: int
    new: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What was brought in, by how the files came, and what was left out and why."""

    repos: tuple[ImportedRepo, ...]
    linked: int
    cloned: int
    copied: int
    known: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deed:
    """One entry of the audit; `at` is seconds since 1970."""

    at: float
    account: str
    action: str
    subject: str
    detail: Mapping[str, Any] | None
