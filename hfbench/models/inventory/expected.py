"""Which hash a file should have: told by a cache's blob, by a git-lfs pointer, or by what a download left behind."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hfbench.models.files import ModelFile, open_regular
from hfbench.models.inventory.facts import Algorithm, Expected, LfsPointer
from hfbench.models.magic import is_lfs_pointer, lfs_size
from hfbench.models.problem import ModelError

DOWNLOADS = ".cache/huggingface/download"
"""Where `hf download --local-dir` keeps a commit, an ETag and a time for each file."""

MOST_POINTER = 1024
"""Bytes of a git-lfs pointer; the specification allows no more."""

MOST_METADATA = 4096

_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})\s*$", re.MULTILINE)
_ALGORITHMS: dict[int, Algorithm] = {64: "sha256", 40: "git-sha1"}
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def expected_of(file: ModelFile, folder: Path, blob: str, pointer: LfsPointer | None) -> Expected | None:
    """The hash of a file's content, None when nothing tells it.

    The Hub's ETag, which names blobs too, is the sha256 of a large file and the git id of any other.
    """
    if pointer is not None:
        return Expected(algorithm="sha256", digest=pointer.oid, source="the git-lfs pointer")
    if blob:
        return of_digest(blob, "the name of its blob")
    return of_digest(_etag(folder, file.name), f"{DOWNLOADS}/{file.name}.metadata")


def of_digest(digest: str, source: str) -> Expected | None:
    """What an ETag of 40 or 64 hexadecimal digits means, None for any other."""
    if not _DIGEST.fullmatch(digest):
        return None
    return Expected(algorithm=_ALGORITHMS[len(digest)], digest=digest, source=source)


def pointer_in(file: ModelFile, folder: Path) -> LfsPointer | None:
    """The git-lfs pointer that stands in place of a file; only small plain files are opened."""
    if file.problem or not 0 < file.bytes <= MOST_POINTER:
        return None
    text = _text(file.path, folder, MOST_POINTER)
    oid, size = _OID.search(text), lfs_size(text)
    if not is_lfs_pointer(text) or oid is None or size is None:
        return None
    digest = oid[1].decode()
    stored = folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    return LfsPointer(oid=digest, size=size, fetched=stored.is_file() and stored.stat().st_size == size)


def _etag(folder: Path, name: str) -> str:
    """The second line of the metadata that a download left for a file."""
    path = folder / DOWNLOADS / f"{name}.metadata"
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    there = inside and path.is_file()
    lines = _text(path, folder, MOST_METADATA).decode("utf-8", "replace").split("\n") if there else []
    return lines[1].strip().strip('"') if len(lines) > 1 else ""


def _text(path: Path, folder: Path, most: int) -> bytes:
    try:
        with open_regular(path, folder) as opened:
            return opened.read(most)
    except (ModelError, OSError):
        return b""  # the listing tells why it cannot be read
