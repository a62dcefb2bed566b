"""The transaction that makes a commit: parent compared, tree changed, branch moved; all of it or nothing."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.access.caller import Caller
from hfbench.registry.database.content import held_blobs, hold_blobs
from hfbench.registry.database.engine import Database
from hfbench.registry.database.history import (
    BRANCH,
    Commit,
    add_commit,
    find_commit,
    find_ref,
    find_revision,
    log,
    move_ref,
    recent_payload,
)
from hfbench.registry.database.repos import Repo, change_repo, lock_repo
from hfbench.registry.errors import BadRequest, Refusal, RepoNotFound, RevisionNotFound, StaleParent
from hfbench.registry.quotas import require_kept_within
from hfbench.registry.revisions.changes import Changes, apply
from hfbench.registry.revisions.entries import EMPTY, blob_git_id, file_entry, lfs_entry
from hfbench.registry.revisions.intake import Intake
from hfbench.registry.revisions.payload import Delete, Head, PutContent, PutUploaded, Step
from hfbench.registry.revisions.trees import Trees
from hfbench.registry.settings import Settings

RETRY_SECONDS = 300.0
"""How long the same request is taken for a repetition of the one before."""
LOOKED_BACK = 1000
"""Commits among which it is looked for."""
NAMED = 5
"""Absent uploads that an error names."""


@dataclass(slots=True)
class Draught:
    """A commit that was read: contents are kept already, nothing refers to them yet."""

    head: Head = field(default_factory=lambda: Head("", "", ""))
    changes: Changes = field(default_factory=Changes)
    contents: set[str] = field(default_factory=set)
    uploads: dict[str, list[str]] = field(default_factory=dict)
    """SHA-256 of what was uploaded before, to the paths that name it."""
    payload: str = ""


async def read_draught(steps: AsyncIterator[Step], intake: Intake, author: str) -> Draught:
    """Read the steps and keep the contents among them."""
    draught, digest = Draught(), hashlib.sha256()
    async for step in steps:
        match step:
            case Head():
                draught.head = step
                told = [step.title, step.message, author]
            case PutContent(path, content):
                sha256 = await intake.take(content)
                draught.contents.add(sha256)
                draught.changes.put(path, file_entry("", sha256, blob_git_id(content), len(content)))
                told = ["put", path, sha256]
            case PutUploaded(path, sha256):
                draught.uploads.setdefault(sha256, []).append(path)
                draught.changes.put(path, lfs_entry("", sha256, 0))  # its size is looked up below
                told = ["put", path, sha256]
            case Delete(path, is_folder):
                draught.changes.delete_folder(path) if is_folder else draught.changes.delete(path)
                told = ["delete", path]
        digest.update(json.dumps(told).encode() + b"\n")
    await intake.finish()
    draught.payload = digest.hexdigest()
    return draught


async def commit(
    database: Database, trees: Trees, settings: Settings, repo: Repo, branch: str, draught: Draught, caller: Caller
) -> tuple[Commit, bool]:
    """The commit on the branch, and whether it is new: a repetition of the last request, or one that changes nothing,
    gives the commit that is there."""
    async with database.writing() as connection:
        if not await lock_repo(connection, repo.id):
            raise RepoNotFound(anonymous=caller.anonymous)
        head = await _head(connection, repo, branch)
        payload = hashlib.sha256(f"{branch}\0{draught.payload}".encode()).hexdigest()
        earlier = await _earlier(connection, repo, head, payload)
        if earlier and (earlier.id == head.id or draught.head.parent == earlier.parent):
            return earlier, False
        if draught.head.parent and draught.head.parent != head.id:
            raise StaleParent
        await _settle_uploads(connection, repo, draught, caller)
        try:
            tree, made = await apply(draught.changes, trees, connection, head.tree)
        except Refusal as error:
            if earlier and error.code == "EntryNotFound":  # it deleted this itself, and others came after it
                return earlier, False
            raise
        if tree.id == head.tree:
            return head, False
        new = _made(repo.id, head.id, tree.id, draught.head, caller.name, payload)
        await trees.save(connection, made)
        await add_commit(connection, repo.id, new)
        await move_ref(connection, repo.id, branch, new.id)
        if added := draught.contents | draught.uploads.keys():
            await hold_blobs(connection, repo.id, added)
            await require_kept_within(connection, settings, repo)
        await change_repo(connection, repo.id, modified=new.at)
    return new, True


async def _head(connection: AsyncConnection, repo: Repo, branch: str) -> Commit:
    id = await find_ref(connection, repo.id, BRANCH, branch)
    found = await find_commit(connection, repo.id, id) if id else None
    if found is None:
        if await find_revision(connection, repo.id, branch):
            raise BadRequest(f"{branch} is not a branch: commits are made on branches.")
        raise RevisionNotFound(branch)
    return found


async def _earlier(connection: AsyncConnection, repo: Repo, head: Commit, payload: str) -> Commit | None:
    """The commit of this branch that an earlier sending of this very request made, if its reply was lost and the client
    asks again."""
    found = await recent_payload(connection, repo.id, payload, time.time() - RETRY_SECONDS)
    if found is None or found.id == head.id:
        return found
    return found if found in await log(connection, repo.id, head.id, LOOKED_BACK) else None


async def _settle_uploads(connection: AsyncConnection, repo: Repo, draught: Draught, caller: Caller) -> None:
    """Give every uploaded file its size; BadRequest when one was not uploaded, or not to where the caller may read."""
    held = await held_blobs(connection, repo.id, caller, draught.uploads)
    if absent := [paths[0] for sha256, paths in draught.uploads.items() if sha256 not in held]:
        more = f" and {len(absent) - NAMED} more" if len(absent) > NAMED else ""
        raise BadRequest(f"Not uploaded before the commit: {', '.join(absent[:NAMED])}{more}. Upload it again.")
    for path, entry in list(draught.changes.added()):
        if entry.is_lfs:
            draught.changes.put(path, lfs_entry("", entry.target, held[entry.target]))


def first_commit(repo: int, author: str) -> Commit:
    """The empty commit every repository begins with."""
    head = Head("initial commit", "", "")
    return _made(repo, "", EMPTY.id, head, author, "")


def _made(repo: int, parent: str, tree: str, head: Head, author: str, payload: str) -> Commit:
    """A commit with an id of its own: two that do the same at the same time are still two."""
    now = time.time()
    text = json.dumps([repo, parent, tree, head.title, head.message, author, now, secrets.token_hex(8)])
    id = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Commit(id, parent, tree, head.title, head.message, author, now, payload)
