"""Trees: folders as lists of entries, named by their content, so that commits share what did not change."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
QUICK = 1
"""zlib level: hashes hardly shrink, names do at any level."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    `target` is the SHA-256 of a file's content, or the id of a folder's tree. `git_id` is what git would call it.
    """

    name: str
    target: str
    git_id: str
    size: int = 0
    is_folder: bool = False
    is_lfs: bool = False


def file_entry(name: str, sha256: str, git_id: str, size: int) -> Entry:
    """A file that git would hold itself."""
    return Entry(name, sha256, git_id, size)


def lfs_entry(name: str, sha256: str, size: int) -> Entry:
    """A file of which git would hold a pointer."""
    return Entry(name, sha256, blob_git_id(pointer(sha256, size)), size, is_lfs=True)


def pointer(sha256: str, size: int) -> bytes:
    """The text git-lfs keeps in the place of a file."""
    return POINTER.format(sha256=sha256, size=size).encode()


def blob_git_id(content: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder: its id among trees, git's id, and its entries by name in sorted order."""

    id: str
    git_id: str
    entries: dict[str, Entry]

    def packed(self) -> bytes:
        """As bytes for the database."""
        return zlib.compress(_text(self.entries.values()), QUICK)


def tree_of(entries: Iterable[Entry]) -> Tree:
    """The tree of these entries."""
    ordered = sorted(entries, key=lambda entry: entry.name)
    return Tree(
        hashlib.sha256(_text(ordered)).hexdigest(), _tree_git_id(ordered), {entry.name: entry for entry in ordered}
    )


def unpacked_tree(id: str, git_id: str, packed: bytes) -> Tree:
    """From what `packed` made."""
    rows = json.loads(zlib.decompress(packed))
    return Tree(id, git_id, {row[0]: Entry(*row) for row in rows})


def _text(entries: Iterable[Entry]) -> bytes:
    rows = [[e.name, e.target, e.git_id, e.size, e.is_folder, e.is_lfs] for e in entries]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def _tree_git_id(entries: Iterable[Entry]) -> str:
    """Git sorts folders as if their names ended with a slash."""
    ordered = sorted(entries, key=lambda entry: entry.name.encode() + (b"/" if entry.is_folder else b""))
    body = b"".join(
        (b"40000 " if e.is_folder else b"100644 ") + e.name.encode() + b"\0" + bytes.fromhex(e.git_id) for e in ordered
    )
    return hashlib.sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).hexdigest()


EMPTY = tree_of(())
