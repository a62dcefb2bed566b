"""Models opened lately: a short list in the cache folder, a convenience that may fail without harm."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hfbench.paths import cache_root

MOST = 30
LONGEST = 4096
"""Characters of one reference: the longest path Linux takes."""

MOST_BYTES = 512 * 1024


def recent_file() -> Path:
    """Where the list is kept."""
    return cache_root() / "recent-models.json"


def forgotten_file() -> Path:
    """Where those are kept that were taken off the list: jobs may name them still."""
    return cache_root() / "forgotten-models.json"


def read_recent(path: Path | None = None) -> list[str]:
    """References, the latest first; an empty list when the file is absent, unreadable or something else."""
    try:
        with open(path or recent_file(), "rb") as file:
            told = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return []
    return _distinct(told) if isinstance(told, list) else []


def remember(reference: str, path: Path | None = None) -> bool:
    """Put a reference in front of the list, by rename; False when the list cannot be written."""
    file = path or recent_file()
    return _write(_distinct([reference, *read_recent(file)]), file)


def forget(reference: str) -> bool:
    """Take a reference off the list, until it is opened again; False when the list cannot be written."""
    left = [each for each in read_recent() if each != reference]
    return remember(reference, forgotten_file()) and _write(left, recent_file())


def _write(references: list[str], file: Path) -> bool:
    text = json.dumps(references)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError:
        return False
    try:
        with open(descriptor, "w", encoding="ascii") as out:
            out.write(text)
        os.replace(made, file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made)
        return False
    return True


def _distinct(references: Iterable[object]) -> list[str]:
    usable = (each for each in references if isinstance(each, str) and 0 < len(each) <= LONGEST)
    return list(dict.fromkeys(usable))[:MOST]
