"""What of a folder a hub lacks: files compared by the hashes that the hub names them by."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.facts import BadAnswer, HubFile, checked_path
from hfbench.jobs.run import Run
from hfbench.models.files import MOST_FILES, ModelFile, list_files
from hfbench.models.inventory.digest import Digest, Identity, digest_of
from hfbench.models.inventory.digest_cache import DigestCache

LITTER = (".DS_Store", "Thumbs.db", "*.incomplete", "*.lock", ".gitkeep.swp", ".hfbench-*")


@dataclass(frozen=True, slots=True)
class Change:
    """A file and what its push would do. `path` is its place on the hub."""

    file: ModelFile
    path: str
    state: Literal["new", "changed", "unchanged"]


def files_to_push(folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[ModelFile]:
    """The files of a folder that a push takes, without litter.

    UsageError for a pattern that matches nothing, HfbenchError for a file that cannot be pushed: a link that leads out
    of the folder, a device, a name a hub does not take, weights that were left on a hub.
    """
    every = list_files(folder)
    if len(every) >= MOST_FILES:
        raise HfbenchError(f"holds {MOST_FILES:,} files or more", where=folder, remedy="push its parts one by one")
    for pattern in (*include, *exclude):
        if not any(_matches(each.name, pattern) for each in every):
            raise UsageError(f"no file matches {pattern!r}", where=folder, remedy=f"hfbench files {folder}")
    chosen = [
        each
        for each in every
        if not any(_matches(each.name, pattern) for pattern in (*LITTER, *exclude))
        and (not include or any(_matches(each.name, pattern) for pattern in include))
    ]
    if not chosen:
        raise UsageError("holds no file to push", where=folder)
    for each in chosen:
        if each.problem or each.held != "whole":
            found = each.problem or "only its header is here: it was left on the hub"
            raise HfbenchError(
                f"cannot be pushed: {found}", where=each.path, remedy="mend it, or leave it out: --exclude"
            )
        try:
            checked_path(each.name)
        except BadAnswer as error:
            told = error if each.name.isprintable() else "its name is not UTF-8, or not to be printed"
            raise HfbenchError(f"cannot be pushed: {told}", where=each.path, remedy="give it another name") from None
    return chosen


def compared(
    folder: Path, files: Sequence[ModelFile], there: Mapping[str, HubFile], run: Run, *, below: str = ""
) -> list[Change]:
    """Each file with what is different of it on the hub. Hashes are remembered until a file changes."""
    alike = [each for each in files if _same_size(each, there.get(below + each.name))]
    total, done = sum(each.bytes for each in alike), 0
    changes = []
    with DigestCache() as cache:
        for each in files:
            remote = there.get(below + each.name)
            state: Literal["new", "changed", "unchanged"] = "new" if remote is None else "changed"
            if remote is not None and _same_size(each, remote):
                digest = digest_with(cache, each, folder, git=not remote.sha256)
                state = "unchanged" if remote.etag in (digest.sha256, digest.git_sha1) else "changed"
                done += each.bytes
                run.progress("compare", done, total, "B")
            changes.append(Change(each, below + each.name, state))
    return changes


def digest_with(cache: DigestCache, file: ModelFile, folder: Path, *, git: bool = False) -> Digest:
    """The hashes of a file, remembered or made."""
    if (known := cache.find(Identity.of(os.stat(file.path)), git=git)) is not None:
        return known
    begun = time.time_ns()
    digest, identity = digest_of(file.path, folder, git=git, read=lambda count: None, stopped=lambda: False)
    cache.keep(identity, digest, begun)
    return digest


def _same_size(file: ModelFile, remote: HubFile | None) -> bool:
    return remote is not None and file.bytes == remote.size


def _matches(name: str, pattern: str) -> bool:
    below = pattern.endswith("/") and name.startswith(pattern)
    return below or fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)
