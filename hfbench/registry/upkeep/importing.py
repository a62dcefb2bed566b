"""Brings models of a disk into a hub: files are hashed, placed once, and named by commits that keep their revisions."""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.errors import HfbenchError
from hfbench.registry.database.audit import note
from hfbench.registry.database.content import FILE, LOST, Blob, add_blob, add_inline, find_blob, hold_blobs
from hfbench.registry.database.history import (
    BRANCH,
    MAIN,
    TAG,
    Commit,
    add_commit,
    add_ref,
    complete_commit,
    find_commit,
    find_ref,
    move_ref,
)
from hfbench.registry.database.people import add_namespace, namespace_id
from hfbench.registry.database.repos import Repo, add_repo, change_repo, find_repo, lock_repo, repo_by_id
from hfbench.registry.errors import Refusal
from hfbench.registry.facts import refresh
from hfbench.registry.hub import Hub
from hfbench.registry.modes import mode_of
from hfbench.registry.names import SHA256, check_ref
from hfbench.registry.revisions.changes import Changes, apply
from hfbench.registry.revisions.commit import first_commit
from hfbench.registry.revisions.entries import EMPTY, Entry, blob_git_id, file_entry, lfs_entry
from hfbench.registry.revisions.intake import LARGEST_INLINE
from hfbench.registry.revisions.payload import Head
from hfbench.registry.storage.blobs import require_kept
from hfbench.registry.storage.drafts import FULL
from hfbench.registry.upkeep.facts import Imported, ImportedRepo, Tell
from hfbench.registry.upkeep.placing import Placer
from hfbench.registry.upkeep.sources import Revision, Source
from hfbench.units import MIB

BY = "administration"
SAMPLE = 512
LARGEST_REGULAR = 10 * MIB


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the source that was hashed; `content` where it is small enough for the database."""

    entry: Entry
    path: Path
    content: bytes | None


class Importer:
    """One import. Repositories that are there get the revisions they lack."""

    def __init__(self, hub: Hub, way: str, *, private: bool, tell: Tell) -> None:
        self.hub, self.private, self.tell = hub, private, tell
        self.placer = Placer(hub.layout, way)
        self.known = 0
        self.hashed: dict[tuple[int, int], Found] = {}
        self.done = self.total = 0

    async def run(self, found: list[Source]) -> Imported:
        """Bring in all sources, one after the other."""
        for path in {p for s in found for r in s.revisions for p in r.files.values()}:
            with suppress(OSError):
                self.total += path.stat().st_size
        left = [line for source in found for line in source.left]
        taken = []
        for source in found:
            try:
                taken += [await self._take(source, left)] if source.revisions else []
            except Refusal as error:
                left.append(f"{source.namespace}/{source.name}: {error.found}")
        self.tell("files", self.total, self.total, "B")
        counts = self.placer.counts
        return Imported(tuple(taken), counts["link"], counts["clone"], counts["copy"], self.known, tuple(left))

    async def _take(self, source: Source, left: list[str]) -> ImportedRepo:
        repo, new = await self._repo(source)
        names: list[str] = []
        files: dict[str, int] = {}
        for revision in source.revisions:
            entries = {}
            for path, file in revision.files.items():
                try:
                    entries[path] = await self._keep(repo, file)
                except OSError as error:
                    if error.errno in FULL:
                        raise
                    left.append(f"{source.name}/{path}: {error.strerror or error}")
            files |= {entry.target: entry.size for entry in entries.values()}
            names.append(await self._commit(repo, revision, entries))
        await refresh(self.hub, repo)
        return ImportedRepo(repo.kind, repo.full_name, tuple(names), len(files), sum(files.values()), new)

    async def _repo(self, source: Source) -> tuple[Repo, bool]:
        async with self.hub.database.writing() as connection:
            repo = await find_repo(connection, source.kind, source.namespace, source.name)
            if repo is not None:
                return repo, False
            owner = await namespace_id(connection, source.namespace)
            if owner is None:
                owner = await add_namespace(connection, source.namespace, "org")
            id = await add_repo(connection, source.kind, owner, source.name, private=self.private)
            await self.hub.trees.save(connection, [EMPTY])
            await note(connection, BY, "import", f"{source.kind} {source.namespace}/{source.name}")
            repo = await repo_by_id(connection, id)
            assert repo is not None
            return repo, True

    async def _keep(self, repo: Repo, path: Path) -> Entry:
        """A file of the source as an entry, after its content is kept and held."""
        told = path.stat()
        key = (told.st_dev, told.st_ino)
        found = self.hashed.get(key)
        if found is None:
            self.tell("files", self.done, self.total, "B")
            found = await asyncio.to_thread(_look, path)
            self.done += told.st_size
            self.hashed[key] = Found(found.entry, path, None)
        entry, content = found.entry, found.content
        async with self.hub.database.reading() as connection:
            known = await find_blob(connection, entry.target)
        if content is None and (known is None or known.place == LOST):
            await asyncio.to_thread(self.placer.place, path, self.hub.layout.blob(entry.target))
            self._require_same(path, told.st_mtime_ns, told.st_size)
        else:
            self.known += known is not None
        async with self.hub.database.writing() as connection:
            await self._note(connection, entry, content)
            await hold_blobs(connection, repo.id, [entry.target])
        return entry

    async def _note(self, connection: AsyncConnection, entry: Entry, content: bytes | None) -> None:
        known = await find_blob(connection, entry.target)
        if content is not None and (known is None or known.place == LOST):
            await add_inline(connection, {entry.target: content})
        elif known is None or known.place == LOST:
            require_kept(self.hub.layout.blob(entry.target), entry.size)
            await add_blob(connection, Blob(entry.target, entry.size, FILE))

    def _require_same(self, path: Path, changed: int, size: int) -> None:
        """HfbenchError when the file was written to after it was hashed."""
        now = path.stat()
        if (now.st_mtime_ns, now.st_size) != (changed, size):
            raise HfbenchError("the file changed while it was brought in", where=path, remedy="import it again")

    async def _commit(self, repo: Repo, revision: Revision, entries: dict[str, Entry]) -> str:
        """The commit of a revision, under its own id where it has one; refs that are free, or new, lead to it."""
        changes = Changes()
        for path, entry in entries.items():
            changes.put(path, entry)
        async with self.hub.database.writing() as connection:
            await lock_repo(connection, repo.id)
            there = await find_commit(connection, repo.id, revision.commit) if revision.commit else None
            if there is not None and there.author != BY:
                return there.id
            tree, made = await apply(changes, self.hub.trees, connection, there.tree if there else EMPTY.id)
            await self.hub.trees.save(connection, made)
            main = await find_ref(connection, repo.id, BRANCH, MAIN)
            head = await find_commit(connection, repo.id, main) if main else None
            if not revision.commit and head is not None and head.tree == tree.id:
                return head.id
            commit = self._commit_of(repo, revision, tree.id, head.id if head and not revision.commit else "")
            if there is None:
                await add_commit(connection, repo.id, commit)
            elif there.tree != tree.id:  # the cache held a part of it, and holds more now
                await complete_commit(connection, repo.id, commit.id, tree.id)
            refs = revision.refs or (() if main else (MAIN,))
            for name in refs:
                await self._point(connection, repo, name, commit.id, ours=not revision.commit)
            if main is None and MAIN not in refs:
                await self._point(connection, repo, MAIN, commit.id, ours=True)
            await hold_blobs(connection, repo.id, [entry.target for entry in entries.values()])
            await change_repo(connection, repo.id, modified=commit.at)
        return commit.id

    def _commit_of(self, repo: Repo, revision: Revision, tree: str, parent: str) -> Commit:
        head = Head("import", "", "")
        made = first_commit(repo.id, BY)
        id = revision.commit or made.id
        return Commit(id, parent, tree, head.title, head.message, BY, time.time(), made.payload)

    async def _point(self, connection: AsyncConnection, repo: Repo, name: str, commit: str, *, ours: bool) -> None:
        """A branch that is not there begins at the commit; one that is there moves only with a folder's new state."""
        try:
            check_ref(name)
        except Refusal:
            return  # a revision that somebody named by a commit, or by a pull request
        there = await find_ref(connection, repo.id, BRANCH, name)
        if there is None and await find_ref(connection, repo.id, TAG, name) is None:
            await add_ref(connection, repo.id, BRANCH, name, commit)
        elif there is not None and ours:
            await move_ref(connection, repo.id, name, commit)


def _look(path: Path) -> Found:
    """Hash a file. Whether git would hold it itself is told by its name in a cache, else by the rule for uploads."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= LARGEST_REGULAR:
            content = file.read()
            sha256 = hashlib.sha256(content).hexdigest()
            is_lfs = _is_lfs(path, size, content[:SAMPLE])
            entry = lfs_entry("", sha256, size) if is_lfs else file_entry("", sha256, blob_git_id(content), size)
            return Found(entry, path, content if size <= LARGEST_INLINE and not is_lfs else None)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Found(lfs_entry("", sha256, size), path, None)


def _is_lfs(path: Path, size: int, sample: bytes) -> bool:
    if path.parent.name == "blobs":
        return SHA256.fullmatch(path.name) is not None
    return mode_of(path.name, size, sample) == "lfs"
