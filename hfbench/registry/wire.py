"""What the protocol calls things: the only place that spells its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hfbench.registry.access.caller import Caller
from hfbench.registry.database.history import BRANCH, TAG, Commit, Ref
from hfbench.registry.database.repos import Repo
from hfbench.registry.revisions.entries import Entry, pointer

Json = dict[str, Any]


def moment(seconds: float) -> str:
    """`2026-11-30T20:11:04.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whoami(caller: Caller, fullname: str, orgs: Mapping[str, str]) -> Json:
    """The account behind a token, with the organisations it has a role in."""
    return {
        "type": "user",
        "id": f"{caller.account:024x}",
        "name": caller.name,
        "fullname": fullname,
        "isPro": False,
        "orgs": [
            {"type": "org", "id": f"{place:024x}", "name": name, "fullname": name, "roleInOrg": role}
            for place, (name, role) in enumerate(orgs.items())
        ],
        "auth": {"type": "access_token", "accessToken": {"displayName": caller.token_name, "role": caller.scope}},
    }


def entry(path: str, found: Entry) -> Json:
    """A file or folder of a tree."""
    if found.is_folder:
        return {"type": "directory", "oid": found.git_id, "size": 0, "path": path}
    told: Json = {"type": "file", "oid": found.git_id, "size": found.size, "path": path}
    if found.is_lfs:
        told["lfs"] = lfs(found) | {"oid": found.target}
    return told


def lfs(found: Entry) -> Json:
    """Size and pointer size of an LFS file."""
    return {"size": found.size, "pointerSize": len(pointer(found.target, found.size))}


def last_commit(commit: Commit) -> Json:
    """The commit that last touched a path."""
    return {"id": commit.id, "title": commit.title, "date": moment(commit.at)}


def commit(found: Commit) -> Json:
    """One line of the history."""
    return {
        "id": found.id,
        "title": found.title,
        "message": found.message,
        "authors": [{"user": found.author, "avatar": ""}],
        "date": moment(found.at),
    }


def refs(found: Iterable[Ref]) -> Json:
    """Branches and tags."""
    told: Json = {"branches": [], "tags": [], "converts": [], "pullRequests": []}
    places = {BRANCH: ("branches", "refs/heads/"), TAG: ("tags", "refs/tags/")}
    for ref in found:
        where, prefix = places[ref.kind]
        told[where].append({"name": ref.name, "ref": f"{prefix}{ref.name}", "targetCommit": ref.commit})
    return told


def repo(found: Repo, head: str, tags: Iterable[str]) -> Json:
    """What lists and pages have in common."""
    told: Json = {
        "_id": f"{found.id:024x}",
        "id": found.full_name,
        "author": found.namespace,
        "sha": head,
        "private": found.private,
        "gated": found.gated or False,
        "disabled": found.disabled,
        "createdAt": moment(found.created),
        "lastModified": moment(found.modified),
        "downloads": found.downloads,
        "likes": 0,
        "tags": list(tags),
    }
    if found.kind == "model":
        told["modelId"] = found.full_name
        if found.pipeline_tag:
            told["pipeline_tag"] = found.pipeline_tag
        if found.library_name:
            told["library_name"] = found.library_name
    return told


def storage(found: Repo, size: int, total: int) -> Json:
    """What a repository takes up; content it shares with others counts in each."""
    return {
        "id": found.full_name,
        "type": found.kind,
        "updatedAt": moment(found.modified),
        "visibility": "private" if found.private else "public",
        "storage": size,
        "storagePercent": size / total if total else 0.0,
    }


def sibling(path: str, found: Entry, *, with_blob: bool) -> Json:
    """A file in the page of a repository."""
    if not with_blob:
        return {"rfilename": path}
    told: Json = {"rfilename": path, "size": found.size, "blobId": found.git_id}
    if found.is_lfs:
        told["lfs"] = lfs(found) | {"sha256": found.target}
    return told
