"""Files of an engine, compared with what its manifest says of them; hashes are remembered until a file changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfbench.engines.manifest import EngineFile
from hfbench.models.files import describe_file
from hfbench.models.inventory.digest import Identity, digest_of
from hfbench.models.inventory.digest_cache import YOUNG_NS, DigestCache
from hfbench.models.problem import ModelError

Looked = Literal["right", "missing", "unreadable", "size", "content", "not hashed"]


@dataclass(frozen=True, kw_only=True)
class LookedAt:
    """A file as it lies there."""

    name: str
    state: Looked
    here: str
    """What it is here, in a few words."""
    sha256: str = ""
    """Where it is known."""


def look_at_files(
    folder: Path,
    wanted: Iterable[EngineFile],
    *,
    hashing: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[LookedAt, ...]:
    """Compare files with the manifest by size and SHA-256.

    Hashes are those remembered since a file changed last; others are computed with `hashing`, and `progress` is told
    bytes done and bytes in all.
    """
    files = list(wanted)
    total, done = sum(each.size for each in files), 0

    def read(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    with DigestCache() as cache:
        return tuple(_look_at(folder, each, cache, read if hashing else None) for each in files)


def look_at_source(folder: Path, wanted: Iterable[EngineFile]) -> tuple[tuple[str, ...], bool]:
    """Names of a checkpoint's files that are missing or changed, by size and by hashes that are remembered; and whether
    the hash of each is known."""
    looked = look_at_files(folder, wanted, hashing=False)
    changed = tuple(each.name for each in looked if each.state in ("missing", "size", "content"))
    return changed, all(each.sha256 for each in looked)


def describe_files(folder: Path, names: Iterable[str]) -> tuple[EngineFile, ...]:
    """Files of a folder as a manifest tells them, hashed now and remembered; ModelError for one that cannot be read."""
    time.sleep(YOUNG_NS / 1e9)  # so that no file is too young to be remembered
    with DigestCache() as cache:
        found = []
        for name in sorted(names):
            sha256, size = _hashed(folder, name, cache, lambda count: None)
            found.append(EngineFile(name=name, size=size, sha256=sha256))
        return tuple(found)


def _look_at(folder: Path, wanted: EngineFile, cache: DigestCache, read: Callable[[int], None] | None) -> LookedAt:
    entry = describe_file(folder / wanted.name, folder)
    if entry.problem:
        state: Looked = "missing" if entry.code == "missing" else "unreadable"
        return LookedAt(name=wanted.name, state=state, here=entry.problem)
    if entry.bytes != wanted.size:
        return LookedAt(name=wanted.name, state="size", here=f"{entry.bytes:,} bytes instead of {wanted.size:,}")
    try:
        known = cache.find(Identity.of(os.stat(entry.path)), git=False)
        sha256 = known.sha256 if known else _hashed(folder, wanted.name, cache, read)[0] if read else ""
    except (ModelError, OSError) as error:
        return LookedAt(name=wanted.name, state="unreadable", here=str(error))
    if not sha256:
        return LookedAt(name=wanted.name, state="not hashed", here="of the right size")
    state = "right" if sha256 == wanted.sha256 else "content"
    return LookedAt(name=wanted.name, state=state, here=f"SHA-256 {sha256[:12]}", sha256=sha256)


def _hashed(folder: Path, name: str, cache: DigestCache, read: Callable[[int], None]) -> tuple[str, int]:
    begun = time.time_ns()
    digest, identity = digest_of(folder / name, folder, read=read, stopped=lambda: False)
    cache.keep(identity, digest, begun)
    return digest.sha256, identity.size
