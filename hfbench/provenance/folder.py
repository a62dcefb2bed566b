"""The files of a model as signing sees them, links of a Hugging Face cache followed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.models.files import MOST_FILES

if TYPE_CHECKING:
    from hfbench.provenance.bundle import Bundle

GIT = (".git", ".gitattributes", ".github", ".gitignore")
"""What the library never signs."""
NEVER = (".cache",)
"""What `hf download --local-dir` keeps beside a model: notes of its own about the files."""


def files_of(folder: Path) -> list[Path]:
    """Every file below a folder, links to folders followed once; without those of git and of a download."""
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        kind = os.stat(root)
        if (kind.st_dev, kind.st_ino) in seen or len(found) > MOST_FILES:
            folders.clear()
            continue
        seen.add((kind.st_dev, kind.st_ino))
        if Path(root) == folder:
            folders[:] = [each for each in folders if each not in (*GIT, *NEVER)]
            names = [each for each in names if each not in GIT]
        found += [Path(root) / each for each in names]
    return sorted(found)


def total_bytes(files: Iterable[Path]) -> int:
    """Bytes of these files; those that are gone count nothing."""
    total = 0
    for each in files:
        try:
            total += each.stat().st_size
        except OSError:
            continue
    return total


def name_inside(folder: Path, file: Path) -> tuple[str, ...]:
    """The name of a file below a folder, by itself; nothing when it lies elsewhere."""
    here, there = folder.absolute(), file.absolute()
    return (there.relative_to(here).as_posix(),) if there.is_relative_to(here) else ()


def hashing_of(folder: Path, ignored: Sequence[str], bundle: Bundle | None = None) -> Any:
    """The library's hashing of a folder, links followed and the names `ignored` left out; as a signature did it, if
    one is given."""
    from model_signing import hashing

    config = hashing.Config()
    if bundle is not None and bundle.method == "shards":
        config.use_shard_serialization(hashing_algorithm=bundle.hash_type, shard_size=bundle.shard_size)
    elif bundle is not None:
        config.use_file_serialization(hashing_algorithm=bundle.hash_type)
    config.set_ignored_paths(paths=ignored, ignore_git_paths=True)
    return config.set_allow_symlinks(True)
