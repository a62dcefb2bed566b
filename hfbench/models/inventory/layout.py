"""How a repository lies in a Hugging Face cache: which revisions there are and which blobs they share."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hfbench.models.files import MOST_FILES, in_shared_store
from hfbench.models.inventory.facts import CachedRevision, CacheLayout

REPOSITORY = re.compile(r"(?:models|datasets|spaces)--.+")
COMMIT = re.compile(r"[0-9a-f]{40}")
INCOMPLETE = ".incomplete"
LONGEST_REF = 41
MOST_REFS = 1000


@dataclass(slots=True)
class Snapshot:
    """What one snapshot holds: a size by blob, the size of plain files, and links that lead nowhere."""

    commit: str
    blobs: dict[str, int] = field(default_factory=dict)
    plain_bytes: int = 0
    files: int = 0
    dangling: int = 0


def repository_of(folder: Path) -> Path | None:
    """The repository in a Hugging Face cache of which a folder is a snapshot, None for any other folder."""
    real = Path(os.path.abspath(folder))
    inside = real.parent.name == "snapshots" and REPOSITORY.fullmatch(real.parent.parent.name)
    return real.parent.parent if inside else None


def blob_of(path: Path) -> str:
    """The name of the blob that a path leads to; empty when it leads to none.

    The blob itself may be a link into the store that all repositories of a cache share.
    """
    for found in (Path(os.path.realpath(path)), first_hop(path)):
        if found.parent.name == "blobs" and REPOSITORY.fullmatch(found.parent.parent.name):
            return found.name
    return ""


def first_hop(path: Path | str) -> Path:
    """What a link names itself, with its folder resolved; the path for what is no link."""
    try:
        target = Path(os.path.dirname(path), os.readlink(path))
    except OSError:
        return Path(path)
    return Path(os.path.realpath(target.parent), target.name)


def read_snapshots(repository: Path) -> list[Snapshot]:
    """Every snapshot of a cached repository, by looking at its links only; nothing is opened."""
    found = [_snapshot(folder, repository / "blobs") for folder in _folders(repository / "snapshots")]
    return sorted(found, key=lambda each: each.commit)


def read_layout(repository: Path, commit: str, snapshots: list[Snapshot]) -> CacheLayout:
    """The layout of a cached repository, seen from one of its commits."""
    refs = dict(_refs(repository / "refs"))
    blobs, incomplete = _blobs(repository / "blobs")
    used = {blob for each in snapshots for blob in each.blobs}
    unused = {name: size for name, size in blobs.items() if name not in used}
    return CacheLayout(
        folder=str(repository),
        refs=refs,
        revisions=tuple(_revision(each, snapshots, refs, commit) for each in snapshots),
        blobs=len(blobs),
        blob_bytes=sum(blobs.values()),
        unused=len(unused),
        unused_bytes=sum(unused.values()),
        incomplete=len(incomplete),
        incomplete_bytes=sum(incomplete),
        absent=tuple(_absent(repository / ".no_exist" / commit)),
    )


def _revision(snapshot: Snapshot, every: list[Snapshot], refs: dict[str, str], commit: str) -> CachedRevision:
    elsewhere = {blob for each in every if each is not snapshot for blob in each.blobs}
    own = sum(size for blob, size in snapshot.blobs.items() if blob not in elsewhere)
    return CachedRevision(
        commit=snapshot.commit,
        refs=tuple(name for name, named in refs.items() if named == snapshot.commit),
        files=snapshot.files,
        bytes=sum(snapshot.blobs.values()) + snapshot.plain_bytes,
        own_bytes=own + snapshot.plain_bytes,
        dangling=snapshot.dangling,
        here=snapshot.commit == commit,
    )


def _snapshot(folder: Path, blobs: Path) -> Snapshot:
    found = Snapshot(folder.name)
    real_blobs = os.path.realpath(blobs)
    for path in _walk(folder):
        found.files += 1
        try:
            status = os.stat(path)
        except OSError:
            found.dangling += 1
            continue
        named = first_hop(path)
        if not stat.S_ISREG(status.st_mode):
            continue
        if str(named.parent) == real_blobs:
            found.blobs[named.name] = status.st_size
        elif not os.path.islink(path):
            found.plain_bytes += status.st_size
    return found


def _walk(folder: Path) -> Iterator[str]:
    left, pending = MOST_FILES, [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                yield entry.path


def _refs(folder: Path) -> Iterator[tuple[str, str]]:
    for number, path in enumerate(sorted(_walk(folder))):
        if number >= MOST_REFS:
            return
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    text = file.read(LONGEST_REF).decode("ascii").strip()
                if COMMIT.fullmatch(text):
                    yield os.path.relpath(path, folder), text
        except (OSError, ValueError):
            continue  # no name of a commit


def _blobs(folder: Path) -> tuple[dict[str, int], list[int]]:
    """Sizes of blobs by name, and of downloads that were broken off."""
    blobs: dict[str, int] = {}
    incomplete: list[int] = []
    for path in _walk(folder):
        try:
            status = os.stat(path) if in_shared_store(first_hop(path)) else os.lstat(path)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        if path.endswith(INCOMPLETE):
            incomplete.append(status.st_size)
        elif os.path.dirname(path) == str(folder):
            blobs[os.path.basename(path)] = status.st_size
    return blobs, incomplete


def _absent(folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in _walk(folder))


def _folders(parent: Path) -> list[Path]:
    try:
        return [Path(each.path) for each in os.scandir(parent) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []
