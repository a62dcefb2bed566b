"""Frees what lies in a cache: refs first, then links, then blobs that nothing names; never what a lock holds."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.caching.facts import CachedRepo, CacheRevision, Freed, Spared
from hfbench.hub.caching.locks import lock_files, read_lock
from hfbench.hub.caching.read import LOCKS, is_real_folder, links_of, read_repo, repositories
from hfbench.hub.caching.store import LOCK, REFERENCES, contents_of, links_in, links_of_store
from hfbench.hub.pulling.locks import BlobLock, holder_of
from hfbench.hub.pulling.partial import JOURNAL, PART
from hfbench.models.inventory.layout import COMMIT
from hfbench.models.problem import listed
from hfbench.models.reference import cached_name

SPARE_FILES = 256
YOUNG = 60.0
"""Seconds: what changed so shortly ago may be in the hands of a client whose locks do not work."""


@dataclass(slots=True)
class Tally:
    """What was freed, what was spared and why."""

    freed: list[Freed] = field(default_factory=list)
    spared: list[Spared] = field(default_factory=list)


class Freeing:
    """Frees within one cache, or with `dry_run` says what it would. Nothing outside the cache is ever touched: only
    real folders are entered, and a link is removed, never what it leads to."""

    def __init__(self, cache: Path, *, dry_run: bool) -> None:
        self.cache, self.dry_run = cache, dry_run
        self.tally = Tally()
        self._gone: set[str] = set()
        """Links into the store that were removed, or would be."""
        if not is_real_folder(cache) and not cache.is_dir():
            raise UsageError("there is no cache here", where=cache, remedy="set HF_HUB_CACHE, or give --cache-dir")

    def model(self, repo: str, revision: str = "") -> None:
        """A repository, or one of its revisions: a branch, a tag or the start of a commit.

        UsageError when the cache does not have it, HfbenchError when a lock of it is held.
        """
        folder = self._folder(repo)
        found = read_repo(folder)
        if not revision:
            self._repository(found, folder)
            return
        self._revisions(found, folder, [_revision(found, revision)])
        left = found.unnamed or found.broken_downloads
        if len(found.revisions) == 1 and not left and not self.dry_run:
            shutil.rmtree(folder)

    def unused(self, seconds: float) -> None:
        """Every revision whose blobs nobody read for so long; what a lock holds is spared."""
        before = time.time() - seconds
        for folder in repositories(self.cache):
            found = read_repo(folder)
            old = [each for each in found.revisions if each.last_used < before]
            if not old:
                continue
            try:
                if len(old) == len(found.revisions):
                    self._repository(found, folder)
                else:
                    self._revisions(found, folder, old)
            except HfbenchError as error:
                self.tally.spared.append(Spared(what=found.repo, why=error.found))

    def orphans(self, *, partials: bool = False) -> None:
        """Blobs no snapshot names, downloads nobody goes on with, and markers of dead processes. With `partials` also
        downloads that the next pull would go on with."""
        for folder in repositories(self.cache):
            found = read_repo(folder)
            for download in found.broken_downloads:
                if partials or not download.resumable:
                    self._orphan(folder, Path(download.path), "broken-off download", download.bytes)
            for blob in found.unnamed:
                self._orphan(folder, Path(blob.path), "blob no revision names", blob.bytes)
        for content in sorted(contents_of(self.cache)):
            if time.time() - os.lstat(content).st_mtime > YOUNG:
                self._free_content(content, "content no repository links to")
        for path in lock_files(self.cache / LOCKS):
            lock = read_lock(path)
            if lock is not None and lock.state == "stale":
                self._unlink(path, f"lock of {lock.owner}", 0)

    def _folder(self, repo: str) -> Path:
        for kind in ("models", "datasets", "spaces"):
            name = cached_name(repo).replace("models--", f"{kind}--", 1)
            if "/" not in name and is_real_folder(self.cache / name):
                return self.cache / name
        raise UsageError("is not in the cache", where=repo, remedy="hfbench cache lists what is")

    def _repository(self, repo: CachedRepo, folder: Path) -> None:
        blobs = [_name(each) for each in _entries(folder / "blobs")]
        with self._locked(repo, folder, blobs):
            stored = links_in(folder / "blobs")
            self.tally.freed.append(Freed(what=f"{repo.kind} {repo.repo}", path=str(folder), bytes=_only_here(folder)))
            if not self.dry_run:
                shutil.rmtree(folder)
            self._let_go(stored)

    def _revisions(self, repo: CachedRepo, folder: Path, gone: Sequence[CacheRevision]) -> None:
        """Some revisions of a repository: refs, then links, then blobs that no other revision names."""
        commits = {each.commit for each in gone}
        kept = {blob for each in repo.revisions if each.commit not in commits for blob in _blobs(folder, each)}
        alone = {blob for each in gone for blob in _blobs(folder, each)} - kept
        with self._locked(repo, folder, sorted(alone)):
            for each in gone:
                self._snapshot(folder, each)
            stored = {path: real for path, real in links_in(folder / "blobs").items() if _name(path) in alone}
            for blob in sorted(alone):
                path = folder / "blobs" / blob
                with contextlib.suppress(OSError):
                    self._unlink(path, "blob", _freed_by(path))
            self._let_go(stored)

    def _snapshot(self, folder: Path, revision: CacheRevision) -> None:
        snapshot = folder / "snapshots" / revision.commit
        if not COMMIT.fullmatch(revision.commit) or not is_real_folder(snapshot.parent) or not is_real_folder(snapshot):
            self.tally.spared.append(Spared(what=str(snapshot), why="it is no snapshot of this cache"))
            return
        plain = _only_here(snapshot)
        self.tally.freed.append(Freed(what=f"revision {revision.commit[:12]}", path=str(snapshot), bytes=plain))
        if self.dry_run:
            return
        for ref in revision.refs:
            if is_real_folder(folder / "refs"):
                (folder / "refs" / ref).unlink(missing_ok=True)
        shutil.rmtree(snapshot)
        for rest in (folder / ".no_exist" / revision.commit, folder / "trees" / f"{revision.commit}.json"):
            if is_real_folder(rest.parent):
                shutil.rmtree(rest) if is_real_folder(rest) else rest.unlink(missing_ok=True)

    def _orphan(self, folder: Path, path: Path, what: str, size: int) -> None:
        """One file that nothing names, under the lock of its blob; looked at again once the lock is held."""
        lock = BlobLock(self.cache / LOCKS / folder.name / f"{_etag(path.name)}.lock")
        if not self.dry_run and not lock.take():
            self.tally.spared.append(Spared(what=str(path), why=_held(lock)))
            return
        try:
            if what.startswith("blob") and path.name in _named_blobs(folder):
                return
            if self.dry_run and (held := read_lock(lock.path)) is not None and held.state != "stale":
                self.tally.spared.append(Spared(what=str(path), why=f"{held.owner} holds its lock"))
            elif time.time() - os.lstat(path).st_mtime < YOUNG:
                why = f"it changed within the last {YOUNG:.0f} s, so somebody may be writing it"
                self.tally.spared.append(Spared(what=str(path), why=why))
            else:
                self._unlink(path, what, size)
                if path.name.endswith(PART) and not self.dry_run:
                    path.with_name(path.name.removesuffix(PART) + JOURNAL).unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # finished, or removed, meanwhile
        finally:
            lock.release()

    def _let_go(self, stored: Mapping[str, Path]) -> None:
        """Contents of the store to which these links led, where no other blob links to them."""
        self._gone |= set(stored)
        for content in sorted(set(stored.values())):
            self._free_content(content, "content of the shared store")

    def _free_content(self, content: Path, what: str) -> None:
        """One content, under its lock: whoever makes a link to it holds that too."""
        lock = BlobLock(content.with_name(content.name + LOCK))
        if not self.dry_run and not lock.take():
            self.tally.spared.append(Spared(what=str(content), why=_held(lock)))
            return
        try:
            if content not in links_of_store(self.cache, self._gone).values():
                self._unlink(content, what, _freed_by(content))
                if not self.dry_run:
                    content.with_name(content.name + REFERENCES).unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # somebody else was quicker
        finally:
            lock.release()

    def _unlink(self, path: Path, what: str, size: int) -> None:
        if not self.dry_run:
            path.unlink()
        self.tally.freed.append(Freed(what=what, path=str(path), bytes=size))

    @contextlib.contextmanager
    def _locked(self, repo: CachedRepo, folder: Path, blobs: Sequence[str]) -> Iterator[None]:
        """Hold the locks of blobs while they go; HfbenchError when one is held by somebody else."""
        locks: list[BlobLock] = []
        _allow_open(len(blobs))
        try:
            for blob in dict.fromkeys(map(_etag, blobs)):
                path = self.cache / LOCKS / folder.name / f"{blob}.lock"
                if self.dry_run or not path.exists():
                    if (held := read_lock(path)) is not None and held.state != "stale":
                        raise _in_use(repo, f"{held.owner} holds the lock of {blob[:12]}")
                    if self.dry_run:
                        continue
                lock = BlobLock(path)
                if not lock.take():
                    raise _in_use(repo, _held(lock))
                locks.append(lock)
            yield
        finally:
            for lock in locks:
                lock.release()


def _allow_open(count: int) -> None:
    """Let this process hold so many locks at a time, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_FILES
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard > 0 else wanted, hard))


def _in_use(repo: CachedRepo, why: str) -> HfbenchError:
    return HfbenchError(
        f"is being downloaded: {why}", where=repo.repo, remedy="wait until that is over; nothing was freed"
    )


def _held(lock: BlobLock) -> str:
    pid = holder_of(lock.path)
    return f"process {pid} holds its lock" if pid else f"somebody holds {lock.path}"


def _revision(repo: CachedRepo, wanted: str) -> CacheRevision:
    """The revision of a branch, tag, commit or its first seven digits at least; UsageError for none or several."""
    found = [each for each in repo.revisions if wanted in each.refs or each.commit == wanted]
    found = found or [each for each in repo.revisions if len(wanted) >= 7 and each.commit.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    known = [name for each in repo.revisions for name in (*each.refs, each.commit[:12])]
    what = "means several revisions" if found else "is no revision in the cache"
    raise UsageError(f"{wanted!r} {what}", where=repo.repo, remedy=f"there are {listed(known, 8) or 'none'}")


def _blobs(folder: Path, revision: CacheRevision) -> set[str]:
    return {blob for _, blob in links_of(folder / "snapshots" / revision.commit) if blob}


def _named_blobs(folder: Path) -> set[str]:
    """Blobs that some snapshot names now."""
    return {blob for snapshot in _entries(folder / "snapshots") for _, blob in links_of(Path(snapshot)) if blob}


def _name(path: str) -> str:
    return os.path.basename(path)


def _etag(name: str) -> str:
    """The blob a file beside the blobs belongs to: the part of its name before the first dot."""
    return name.partition(".")[0]


def _entries(folder: Path) -> list[str]:
    if not is_real_folder(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(each.path for each in entries)


def _only_here(folder: Path) -> int:
    """Bytes that go with a folder: of plain files that have no other name."""
    total = 0
    for top, _, names in os.walk(folder):
        total += sum(_freed_by(Path(top) / name) for name in names)
    return total


def _freed_by(path: Path) -> int:
    """Bytes on disk that go when a name goes: none of a link, none of a file with another name."""
    status = os.lstat(path)
    return min(status.st_size, status.st_blocks * 512) if status.st_nlink == 1 and not os.path.islink(path) else 0
