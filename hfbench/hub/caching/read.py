"""Reads a Hugging Face cache: looks at entries and links, opens nothing but refs, markers and journals."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from hfbench.errors import UsageError
from hfbench.hub.caching.facts import BrokenDownload, CachedRepo, CacheReport, CacheRevision, Kind, Unnamed
from hfbench.hub.caching.locks import read_locks
from hfbench.hub.caching.store import links_in, read_store
from hfbench.hub.pulling.leftovers import is_ours
from hfbench.hub.pulling.partial import JOURNAL, PART, read_journal
from hfbench.models.inventory.layout import (
    INCOMPLETE,
    REPOSITORY,
    Snapshot,
    first_hop,
    read_layout,
    read_snapshots,
)

LOCKS = ".locks"
KNOWN = frozenset({LOCKS, "CACHEDIR.TAG", "version.txt", "blobs"})
"""Entries of a cache that are no repositories; `blobs` is the store that stock clients may share between them."""


def read_cache(cache: Path) -> CacheReport:
    """Everything that lies in a cache; UsageError when there is none."""
    if not cache.is_dir():
        raise UsageError("there is no cache here", where=cache, remedy="set HF_HUB_CACHE, or give --cache-dir")
    folders = repositories(cache)
    repos = tuple(sorted((read_repo(each) for each in folders), key=lambda repo: (-repo.bytes, repo.repo)))
    locks, idle = read_locks(cache / LOCKS)
    store = read_store(cache)
    alone = sum(each.bytes - each.store_bytes for each in repos)
    names = {each.name for each in folders} | KNOWN
    return CacheReport(
        folder=str(cache),
        repos=repos,
        bytes=alone + (store.bytes if store else 0),
        store=store,
        locks=tuple(locks),
        idle_locks=idle,
        strange=tuple(sorted(each.name for each in os.scandir(cache) if each.name not in names)),
    )


def repositories(cache: Path) -> list[Path]:
    """The folders of a cache that are repositories: real ones, never what a link leads to."""
    with os.scandir(cache) as entries:
        return sorted(
            Path(each.path)
            for each in entries
            if REPOSITORY.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
        )


def read_repo(folder: Path) -> CachedRepo:
    """One repository of a cache."""
    kind, _, name = folder.name.partition("--")
    snapshots = [each for each in read_snapshots(folder) if is_real_folder(folder / "snapshots")]
    refs = read_layout(folder, "", []).refs
    blobs, downloads = blobs_of(folder), tuple(_downloads(folder / "blobs"))
    used = {name for each in snapshots for name in each.blobs}
    revisions = tuple(_revision(folder, each, snapshots, refs, blobs) for each in snapshots)
    on_disk = sum(status.st_size for status in blobs.values()) + sum(each.bytes for each in downloads)
    plain = sum(each.plain_bytes for each in snapshots)
    linked = sum(sum(each.blobs.values()) for each in snapshots)
    return CachedRepo(
        kind=cast(Kind, kind.removesuffix("s")),
        repo=name.replace("--", "/"),
        path=str(folder),
        bytes=on_disk + plain,
        store_bytes=sum(blobs[os.path.basename(path)].st_size for path in links_in(folder / "blobs")),
        shared_bytes=max(0, linked - sum(blobs[name].st_size for name in used if name in blobs)),
        revisions=revisions,
        unnamed=tuple(
            Unnamed(path=str(folder / "blobs" / name), bytes=status.st_size)
            for name, status in sorted(blobs.items())
            if name not in used
        ),
        broken_downloads=downloads,
        last_used=max((each.last_used for each in revisions), default=_changed(folder)),
    )


def blobs_of(folder: Path) -> dict[str, os.stat_result]:
    """The whole blobs of a repository by name: plain files directly in a real `blobs` folder, and links into the store
    of the cache."""
    if not is_real_folder(folder / "blobs"):
        return {}
    stored = links_in(folder / "blobs")
    found = {}
    with os.scandir(folder / "blobs") as entries:
        for each in entries:
            status = each.stat(follow_symlinks=each.path in stored)
            if stat.S_ISREG(status.st_mode) and not each.name.endswith(INCOMPLETE):
                found[each.name] = status
    return found


def is_real_folder(path: Path) -> bool:
    """Whether a path is a folder itself, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def links_of(snapshot: Path) -> Iterator[tuple[str, str]]:
    """Every file below a snapshot with the name of its blob; empty for a plain file and for a link elsewhere."""
    blobs = os.path.realpath(snapshot.parent.parent / "blobs")
    for top, folders, names in os.walk(snapshot):
        for name in [*names, *(each for each in folders if os.path.islink(os.path.join(top, each)))]:
            path = os.path.join(top, name)
            named = first_hop(path)
            blob = named.name if os.path.islink(path) and str(named.parent) == blobs else ""
            yield os.path.relpath(path, snapshot), blob


def _revision(
    folder: Path,
    snapshot: Snapshot,
    every: list[Snapshot],
    refs: object,
    blobs: dict[str, os.stat_result],
) -> CacheRevision:
    elsewhere = {name for each in every if each is not snapshot for name in each.blobs}
    own = sum(size for name, size in snapshot.blobs.items() if name not in elsewhere)
    named = cast(dict[str, str], refs)
    used = [max(blobs[name].st_atime, blobs[name].st_mtime) for name in snapshot.blobs if name in blobs]
    path = folder / "snapshots" / snapshot.commit
    broken = [name for name, _ in links_of(path) if not (path / name).exists()] if snapshot.dangling else []
    return CacheRevision(
        commit=snapshot.commit,
        refs=tuple(name for name, commit in named.items() if commit == snapshot.commit),
        files=snapshot.files,
        bytes=sum(snapshot.blobs.values()) + snapshot.plain_bytes,
        own_bytes=own + snapshot.plain_bytes,
        broken=tuple(broken),
        last_used=max(used, default=_changed(path)),
    )


def _downloads(blobs: Path) -> Iterator[BrokenDownload]:
    """Downloads that were cut short; a journal belongs to its partial file."""
    if not is_real_folder(blobs):
        return
    with os.scandir(blobs) as entries:
        every = sorted(entries, key=lambda each: each.name)
    for each in every:
        status = each.stat(follow_symlinks=False)
        if not each.name.endswith(INCOMPLETE) or not stat.S_ISREG(status.st_mode):
            continue
        if each.name.endswith(JOURNAL) and (blobs / f"{each.name.removesuffix(JOURNAL)}{PART}").exists():
            continue
        told: dict[str, object] = {}
        if each.name.endswith(PART):
            told, _ = read_journal(blobs / f"{each.name.removesuffix(PART)}{JOURNAL}")
        path = told.get("path")
        yield BrokenDownload(
            path=each.path,
            bytes=min(status.st_size, status.st_blocks * 512),
            resumable=is_ours(each.name) and bool(told),
            file=path if isinstance(path, str) else "",
            changed=status.st_mtime,
        )


def _changed(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
