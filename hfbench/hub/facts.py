"""What a hub says of a model: records checked when they are read, because a hub may say anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hfbench.models.remote_mark import MARK

COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

LONGEST_PATH, LONGEST_NAME = 1024, 255
"""Bytes of a path and of each name in it, as file systems take them."""
LARGEST = 1 << 43
"""Bytes of one file: 8 TiB."""


class BadAnswer(ValueError):
    """A hub's answer is not what the protocol says; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a revision. `git_sha1` is the git blob id; `sha256` is empty for files that are no LFS files."""

    path: str
    size: int
    git_sha1: str = ""
    sha256: str = ""

    @property
    def etag(self) -> str:
        """What the hub names the content by, and a cache its blob."""
        return self.sha256 or self.git_sha1


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """A model at a revision that was resolved to its commit."""

    id: str
    commit: str
    private: bool
    gated: str
    """Empty, `auto` or `manual`."""
    raw: Mapping[str, Any]
    """The whole answer."""


@dataclass(frozen=True, slots=True)
class Refs:
    """Branches and tags with their commits."""

    branches: Mapping[str, str]
    tags: Mapping[str, str]


def read_info(data: Any) -> RepoInfo:
    """A `model_info` answer; BadAnswer when it names no commit."""
    if not isinstance(data, dict):
        raise BadAnswer("it is no object")
    commit = data.get("sha")
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise BadAnswer("it names no commit")
    gated = data.get("gated")
    return RepoInfo(
        id=str(data.get("id") or data.get("modelId") or ""),
        commit=commit,
        private=data.get("private") is True,
        gated=gated if gated in ("auto", "manual") else "manual" if gated is True else "",
        raw=data,
    )


def read_file(data: Any) -> HubFile | None:
    """An entry of a tree, None for a folder; BadAnswer for a path or a size that no file can have."""
    if not isinstance(data, dict) or not isinstance(data.get("path"), str):
        raise BadAnswer("an entry has no path")
    if data.get("type") == "directory":
        return None
    path, lfs = checked_path(data["path"]), data.get("lfs")
    lfs = lfs if isinstance(lfs, dict) else {}
    size = lfs.get("size", data.get("size"))
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LARGEST:
        raise BadAnswer(f"{path!r} is said to have a size of {str(size)[:40]}")
    return HubFile(path, size, _digest(COMMIT, data.get("oid")), _digest(_SHA256, lfs.get("oid") or lfs.get("sha256")))


def read_refs(data: Any) -> Refs:
    """A `refs` answer; entries that are no refs are left out."""
    if not isinstance(data, dict):
        raise BadAnswer("it is no object")
    return Refs(_named(data.get("branches")), _named(data.get("tags")))


def checked_path(path: str) -> str:
    """A path that stays inside its folder, as it is; BadAnswer for any other."""
    parts = path.split("/")
    odd = "\0" in path or "\\" in path or PurePosixPath(path).is_absolute() or any(p in ("", ".", "..") for p in parts)
    try:
        long = len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts)
    except UnicodeEncodeError:
        odd = long = True
    if odd or long or parts[-1] == MARK:
        raise BadAnswer(f"{path[:80]!r} is not the path of a file in a model")
    return path


def _digest(pattern: re.Pattern[str], text: Any) -> str:
    return text if isinstance(text, str) and pattern.fullmatch(text) else ""


def _named(refs: Any) -> dict[str, str]:
    each = [ref for ref in refs if isinstance(ref, dict)] if isinstance(refs, list) else []
    return {
        ref["name"]: ref["targetCommit"]
        for ref in each
        if isinstance(ref.get("name"), str) and _digest(COMMIT, ref.get("targetCommit"))
    }
