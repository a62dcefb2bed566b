"""Names that clients give: of repositories, revisions, branches and paths. What could escape or confuse is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeGuard

from hfbench.registry.errors import BadRequest

LONGEST_NAME, LONGEST_PATH = 96, 4096
LONGEST_PART = 255
"""Bytes of one part of a path: what file systems take."""
RESERVED = {
    *("api", "datasets", "spaces", "models", "settings", "resolve", "tree", "revision", "refs", "commits", "commit"),
    *("preupload", "branch", "tag", "paths-info", "raw", "blob", "metrics", "health", "v1", "v2"),
}
"""Words of routes: a namespace or repository of such a name could not be told from one."""
COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_BRANCH_TROUBLE = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|\.$|/$|^/|^\.")

LARGEST_SIZE = 1 << 60


def check_name(name: str, what: str) -> str:
    """A name of a namespace or repository; BadRequest says what is wrong with it."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or "--" in name or ".." in name:
        raise BadRequest(
            f"{name[:120]!r} is no name of a {what}: letters, digits, single - and ., and _; at most {LONGEST_NAME},"
            " beginning with a letter or digit."
        )
    if name.endswith(".git") or name.casefold() in RESERVED:
        raise BadRequest(f"{name!r} is no name of a {what}: it is a word of this hub's addresses.")
    return name


def check_ref(name: str) -> str:
    """A name of a branch or tag by git's rules; BadRequest when it is none, or looks like a commit."""
    if not name or len(name.encode()) > LONGEST_PART or _BRANCH_TROUBLE.search(name) or name.startswith(("-", "refs/")):
        raise BadRequest(f"{name[:120]!r} is no name of a branch or tag.")
    if COMMIT.fullmatch(name):
        raise BadRequest(f"{name!r} looks like a commit and can be no branch or tag.")
    return name


def path_trouble(path: str) -> str:
    """Why this is no path of a file in a repository, or an empty string."""
    if not path:
        return "it is empty"
    if "\0" in path or "\\" in path or any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        return "it has a control character or a backslash"
    try:
        if len(path.encode("utf-8")) > LONGEST_PATH:
            return f"it is longer than {LONGEST_PATH} bytes"
    except UnicodeEncodeError:
        return "it is not UTF-8"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "it is absolute, or has a part that is empty, . or .."
        if part.rstrip(". ").casefold() == ".git":
            return "it has a part .git"
        if len(part.encode()) > LONGEST_PART:
            return f"a part of it is longer than {LONGEST_PART} bytes"
    return ""


def check_path(path: str) -> str:
    """The path; BadRequest with the reason when it is none."""
    if trouble := path_trouble(path):
        raise BadRequest(f"Invalid path {path[:200]!r}: {trouble}.")
    return path


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """Two names of one folder that differ only in their case, if there are such: half of all machines hold one."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            return other, name
    return None


def is_size(value: object) -> TypeGuard[int]:
    """Whether a client gave a number of bytes that any disk could have."""
    return type(value) is int and 0 <= value < LARGEST_SIZE
