"""Weights counted from the headers of a folder: read once, and again when a file of it changes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hfbench.estimate.weights import Weights, from_columns
from hfbench.models.checkpoint import open_checkpoint
from hfbench.models.files import list_files
from hfbench.models.problem import Problem
from hfbench.models.weights import Format

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, eq=False)
class Headers:
    """What the headers tell. `weights` is None when no tensor could be read."""

    format: Format
    weights: Weights | None
    problems: tuple[Problem, ...]


def count_headers(folder: Path, *, layers: int | None, tied: bool | None, bits: int | None) -> Headers:
    """All tensors of a folder, counted as `from_columns` does."""
    return _counted(folder, _stamp(folder), layers, tied, bits)


@lru_cache(maxsize=4)
def _counted(folder: Path, stamp: Stamp, layers: int | None, tied: bool | None, bits: int | None) -> Headers:
    """Asked again for other ranks or types, a model is not read again: 90,000 headers take half a second."""
    checkpoint = open_checkpoint(folder, list_files(folder))
    known = len(checkpoint.columns) > 0
    weights = from_columns(checkpoint.columns, layers=layers, tied=tied, bits=bits) if known else None
    return Headers(checkpoint.format, weights, checkpoint.problems)


def _stamp(folder: Path) -> Stamp:
    """Name, size and time of every entry, links followed: it differs once a file was replaced."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    state = entry.stat()
                    found.append((entry.name, state.st_size, state.st_mtime_ns))
                except OSError:  # a link to nothing
                    found.append((entry.name, -1, -1))
    except OSError:
        pass  # reading it will say why
    return tuple(sorted(found))
