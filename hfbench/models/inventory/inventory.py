"""Takes the inventory of a model's folder, and hashes its files on demand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from hfbench.errors import HfbenchError, UsageError
from hfbench.models.files import SKIPPED_FOLDERS, ModelFile, list_files
from hfbench.models.inventory.digest import Digest, Identity, digest_of
from hfbench.models.inventory.digest_cache import DigestCache
from hfbench.models.inventory.expected import expected_of, of_digest, pointer_in
from hfbench.models.inventory.facts import UNREADABLE, Expected, FileEntry, Inventory, LfsPointer, Reading, entry_of
from hfbench.models.inventory.layout import Snapshot, blob_of, read_layout, read_snapshots, repository_of
from hfbench.models.problem import counted, listed
from hfbench.models.reference import Location
from hfbench.models.remote_mark import RemoteMark, read_mark, weights_absent
from hfbench.units import show_bytes


def take_inventory(location: Location, files: Iterable[ModelFile] | None = None) -> Inventory:
    """Every file of a model, with what links lead to; only small files are opened, to recognise git-lfs pointers.

    HfbenchError when the folder cannot be listed.
    """
    folder = location.folder
    repository = repository_of(folder)
    snapshots = read_snapshots(repository) if repository else []
    commit = folder.absolute().name if repository else ""
    others = [each for each in snapshots if each.commit != commit]
    mark = read_mark(folder)
    entries = tuple(_entry(each, folder, others, mark) for each in (list_files(folder) if files is None else files))
    total, own = _sizes(entries, folder, in_cache=repository is not None)
    return Inventory(
        model=location.name,
        folder=str(folder),
        source=location.source,
        repo=location.repo,
        revision=location.revision,
        commit=location.commit or commit or None,
        files=entries,
        bytes=total,
        own_bytes=own,
        shared_bytes=total - own,
        cache=read_layout(repository, commit, snapshots) if repository and mark is None else None,
        notes=(*filter(None, [location.note, _left(mark, entries)]), *_notes(folder)),
    )


def wanted(entries: Sequence[FileEntry], only: Sequence[str]) -> list[FileEntry]:
    """The files whose names match one of the patterns, all without any; UsageError for a pattern that matches none."""
    for pattern in only:
        if not any(_matches(each.name, pattern) for each in entries):
            raise UsageError(f"no file matches {pattern!r}", remedy="hfbench files MODEL lists their names")
    return [each for each in entries if not only or any(_matches(each.name, pattern) for pattern in only)]


def hashed(
    entries: Sequence[FileEntry],
    folder: Path,
    *,
    cache: DigestCache,
    tell: Callable[[Reading], None] = lambda reading: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[FileEntry]:
    """The files with their hashes and verdicts, one by one; digest.Stopped when `stopped` says so.

    What cannot be read gets a verdict too; links out of the folder, FIFOs and devices are left as they are.
    """
    total, done = sum(each.bytes for each in entries), 0
    for entry in entries:
        tell(Reading(entry.name, done, total))
        start = done

        def read(count: int, name: str = entry.name) -> None:
            nonlocal done
            done += count
            tell(Reading(name, done, total))

        yield _hashed(entry, folder, cache, read, stopped)
        done = start + entry.bytes


def _left(mark: RemoteMark | None, entries: Sequence[FileEntry]) -> str:
    """That files were left on a hub, in a sentence."""
    left = [each for each in entries if each.held != "whole"]
    if mark is None or not left:
        return ""
    size = show_bytes(sum(each.bytes for each in left))
    return f"{counted(len(left), 'file')} of {size} left on {mark.endpoint}: hfbench pull {mark.reference} fetches them"


def _hashed(
    entry: FileEntry, folder: Path, cache: DigestCache, read: Callable[[int], None], stopped: Callable[[], bool]
) -> FileEntry:
    if entry.problem:
        return replace(entry, verdict="unreadable", note=entry.problem) if entry.code in UNREADABLE else entry
    if entry.held != "whole" and (mark := read_mark(folder)) is not None:
        return replace(entry, verdict="unreadable", note=str(weights_absent(mark, "a hash of it")))
    git = entry.expected is not None and entry.expected.algorithm == "git-sha1"
    path = Path(entry.path)
    try:
        known = cache.find(Identity.of(os.stat(path)), git=git)
        if known is not None:
            return judged(entry, known, cached=True)
        begun = time.time_ns()
        digest, identity = digest_of(path, folder, git=git, read=read, stopped=stopped)
    except OSError as error:
        return replace(entry, verdict="unreadable", note=f"cannot be looked at ({error.strerror})")
    except HfbenchError as error:
        return replace(entry, verdict="unreadable", note=error.found)
    cache.keep(identity, digest, begun)
    return judged(entry, digest, cached=False)


def judged(entry: FileEntry, digest: Digest, *, cached: bool) -> FileEntry:
    """A file with its hashes, compared with the one it should have."""
    entry = replace(entry, sha256=digest.sha256, git_sha1=digest.git_sha1, cached=cached, verdict="unknown", note="")
    if entry.expected is None:
        return entry
    found = digest.git_sha1 if entry.expected.algorithm == "git-sha1" else digest.sha256
    if found == entry.expected.digest:
        return replace(entry, verdict="ok")
    if entry.lfs is not None:
        return replace(entry, verdict="differs", note="this is a git-lfs pointer, not the file itself")
    algorithm = entry.expected.algorithm.replace("-", " ")
    note = f"{algorithm} is {found}, {entry.expected.source} says {entry.expected.digest}"
    return replace(entry, verdict="differs", note=note)


def _entry(file: ModelFile, folder: Path, others: Sequence[Snapshot], mark: RemoteMark | None) -> FileEntry:
    blob = blob_of(file.path) if file.target else ""
    pointer = pointer_in(file, folder)
    return replace(
        entry_of(file),
        names=_names(file),
        blob=blob,
        shared=tuple(each.commit for each in others if blob and blob in each.blobs),
        lfs=pointer,
        expected=None if file.problem else _expected(file, folder, blob, pointer, mark),
    )


def _expected(
    file: ModelFile, folder: Path, blob: str, pointer: LfsPointer | None, mark: RemoteMark | None
) -> Expected | None:
    if mark is not None and file.name in mark.files:
        return of_digest(mark.files[file.name].etag, mark.endpoint)
    return expected_of(file, folder, blob, pointer)


def _names(file: ModelFile) -> int:
    try:
        return 1 if file.problem else os.stat(file.path).st_nlink
    except OSError:
        return 1


def _sizes(entries: Sequence[FileEntry], folder: Path, *, in_cache: bool) -> tuple[int, int]:
    """Bytes of all contents, each counted once, and of those that nothing else uses; all, of a model left on a hub."""
    if any(entry.held != "whole" for entry in entries):
        left = sum(entry.bytes for entry in entries)
        return left, left
    seen: dict[tuple[int, int], list[FileEntry]] = {}
    for entry in entries:
        if not entry.problem:
            try:
                status = os.stat(entry.path)
            except OSError:
                continue
            seen.setdefault((status.st_dev, status.st_ino), []).append(entry)
    top = os.path.realpath(folder)
    total = sum(same[0].bytes for same in seen.values())
    own = sum(same[0].bytes for same in seen.values() if not _used_elsewhere(same, top, in_cache=in_cache))
    return total, own


def _used_elsewhere(same: Sequence[FileEntry], top: str, *, in_cache: bool) -> bool:
    """Whether a content would outlive the folder: another revision, another name, or a place that links lead to."""
    if in_cache and same[0].blob:
        return bool(same[0].shared)
    inside = any(not each.target for each in same) or os.path.realpath(same[0].path).startswith(top + os.sep)
    return not inside or same[0].names > sum(not each.target for each in same)


def _notes(folder: Path) -> Iterator[str]:
    there = [name for name in sorted(SKIPPED_FOLDERS) if os.path.isdir(folder / name)]
    if there:
        yield f"not listed: what lies in {listed(there)}"


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)
