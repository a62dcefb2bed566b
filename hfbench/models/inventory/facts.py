"""The records that tell how files lie on disk; light to import, for declarations and screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hfbench.models.files import FileKind, ModelFile
from hfbench.models.remote_mark import Held

Algorithm = Literal["sha256", "git-sha1"]
"""`git-sha1` is the id git gives a file: SHA-1 over `blob SIZE`, a NUL byte and the content."""

Verdict = Literal["", "ok", "differs", "unknown", "unreadable"]
"""Empty while not hashed; `unknown` when nothing says what the hash should be."""

UNREADABLE = frozenset({"missing", "broken_symlink", "unreadable"})
"""Codes of entries that should have had content to hash."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The hash a file should have, in hexadecimal digits, and where that is told."""

    algorithm: Algorithm
    digest: str
    source: str


@dataclass(frozen=True, kw_only=True)
class LfsPointer:
    """What a git-lfs pointer claims of the file it stands for; `fetched` when .git/lfs/objects holds that file."""

    oid: str
    size: int
    fetched: bool = False


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file. `bytes` is the size of what a link leads to; `target` is the link as it is written."""

    name: str
    path: str
    bytes: int
    kind: FileKind
    target: str = ""
    code: str = ""
    problem: str = ""
    """Why it cannot be opened; it never was."""
    held: Held = "whole"
    """How much of it is here: of a model opened on a hub, headers of weights and small files."""
    names: int = 1
    """Names (hard links) the content has on its file system."""
    blob: str = ""
    """Name of the blob of a Hugging Face cache that a link leads to."""
    shared: tuple[str, ...] = ()
    """Commits of other cached revisions that use the same blob."""
    lfs: LfsPointer | None = None
    expected: Expected | None = None
    sha256: str | None = None
    git_sha1: str | None = None
    verdict: Verdict = ""
    cached: bool = False
    """True when the hash is remembered from an earlier run."""
    note: str = ""
    """What there is to say of the verdict."""


@dataclass(frozen=True, kw_only=True)
class CachedRevision:
    """One snapshot of a cached repository. `own_bytes` would be freed with it; the rest others use too."""

    commit: str
    refs: tuple[str, ...]
    files: int
    bytes: int
    own_bytes: int
    dangling: int
    here: bool
    """True for the revision that was asked for."""


@dataclass(frozen=True, kw_only=True)
class CacheLayout:
    """A repository in a Hugging Face cache: refs name commits, snapshots link to blobs."""

    folder: str
    refs: Mapping[str, str]
    revisions: tuple[CachedRevision, ...]
    blobs: int
    blob_bytes: int
    unused: int
    unused_bytes: int
    """Blobs that no snapshot links to."""
    incomplete: int
    incomplete_bytes: int
    """Downloads that were broken off; nothing resumes them."""
    absent: tuple[str, ...]
    """Files that the cache knows this commit does not have."""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """All files of a model.

    `own_bytes` would be freed if the folder, or this revision of a cache, were removed; `shared_bytes` are also in
    use elsewhere: by another revision, by another name, or in a place that links lead to.
    """

    model: str
    folder: str
    source: str
    repo: str | None
    revision: str | None
    commit: str | None
    files: tuple[FileEntry, ...]
    bytes: int
    own_bytes: int
    shared_bytes: int
    cache: CacheLayout | None
    notes: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[FileEntry, ...]:
        """Files whose hash is not what it should be, or that could not be hashed though they were to be."""
        return tuple(each for each in self.files if each.verdict in ("differs", "unreadable"))


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the hashing is: the file under way, bytes done and bytes in all."""

    name: str
    done: int
    total: int


def entry_of(file: ModelFile) -> FileEntry:
    """A file as the listing tells it, without a further look."""
    return FileEntry(
        name=file.name,
        path=str(file.path),
        bytes=file.bytes,
        kind=file.kind,
        target=file.target,
        code=file.code,
        problem=file.problem,
        held=file.held,
    )
