"""The store of contents that stock clients keep once for all repositories of a cache; blobs are links into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from hfbench.hub.caching.facts import SharedStore
from hfbench.models.files import SHARED_STORE, in_shared_store
from hfbench.models.inventory.layout import REPOSITORY

STORE = "blobs"
REFERENCES, LOCK = ".refs", ".lock"
"""Beside a content: which blobs link to it, as stock clients noted, and the lock under which it comes and goes."""


def read_store(cache: Path) -> SharedStore | None:
    """What lies in the store, None where a cache has none."""
    contents = contents_of(cache)
    if not (cache / STORE / SHARED_STORE).is_file():
        return None
    linked = set(links_of_store(cache).values())
    return SharedStore(
        path=str(cache / STORE),
        contents=len(contents),
        bytes=sum(contents.values()),
        unused_bytes=sum(size for path, size in contents.items() if path not in linked),
    )


def contents_of(cache: Path) -> dict[Path, int]:
    """Sizes of the contents by their real paths."""
    store = Path(os.path.realpath(cache)) / STORE
    found = {}
    if not stat.S_ISDIR(_mode(store)):
        return {}
    for folder in os.scandir(store):
        if len(folder.name) == 2 and folder.is_dir(follow_symlinks=False):
            for each in os.scandir(folder.path):
                if each.is_file(follow_symlinks=False) and in_shared_store(Path(each.path)):
                    found[Path(each.path)] = each.stat(follow_symlinks=False).st_size
    return found


def links_of_store(cache: Path, without: Collection[str] = ()) -> dict[str, Path]:
    """The blobs of all repositories that are links into the store, with the real path each leads to."""
    found: dict[str, Path] = {}
    for repo in os.scandir(cache):
        blobs = os.path.join(repo.path, "blobs")
        if REPOSITORY.fullmatch(repo.name) and repo.is_dir(follow_symlinks=False) and stat.S_ISDIR(_mode(blobs)):
            found |= {path: content for path, content in links_in(blobs).items() if path not in without}
    return found


def links_in(blobs: str | Path) -> dict[str, Path]:
    """The blobs of one repository that are links into the store of its own cache."""
    if not stat.S_ISDIR(_mode(blobs)):
        return {}
    store = Path(os.path.realpath(blobs)).parents[1] / STORE
    found = {}
    for each in os.scandir(blobs):
        if each.is_symlink():
            real = Path(os.path.realpath(each.path))
            if real.parent.parent == store and in_shared_store(real):
                found[each.path] = real
    return found


def _mode(path: str | Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
