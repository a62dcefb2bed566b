"""The mark of a model that was opened on a hub without its weights, and the refusal to use what is not there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError
from hfbench.exits import Exit

MARK = ".hfbench-remote.json"
LARGEST = 16 << 20

Held = Literal["whole", "header", "nothing"]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the hub and how much of it is here; the rest of it reads as zeros."""

    size: int
    held: Held
    etag: str = ""


@dataclass(frozen=True, slots=True)
class RemoteMark:
    """Where the files of a folder come from. `reference` is what hfbench takes for the model: `lab:org/name`."""

    reference: str
    endpoint: str
    url: str
    repo: str
    revision: str
    commit: str
    files: Mapping[str, RemoteFile]

    def holds(self, name: str) -> bool:
        """Whether a file is here with all its bytes."""
        return name in self.files and self.files[name].held == "whole"


class WeightsAbsent(HfbenchError):
    """What was asked needs bytes that were left on the hub."""

    exit = Exit.ENVIRONMENT


def read_mark(folder: Path) -> RemoteMark | None:
    """The mark of a folder; None for any other, and for a mark that cannot be read."""
    path = os.path.join(folder, MARK)
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return _read(path, state.st_ino, state.st_mtime_ns, state.st_size) if stat.S_ISREG(state.st_mode) else None


@lru_cache(maxsize=16)
def _read(path: str, inode: int, mtime_ns: int, size: int) -> RemoteMark | None:
    """Read once for each state of the file: whoever opens a file of the folder asks."""
    try:
        with open(path, "rb") as file:
            return decode(RemoteMark, json.loads(file.read(LARGEST)))
    except (OSError, ValueError, RecursionError):
        return None


def write_mark(folder: Path, mark: RemoteMark) -> None:
    """Mark a folder; HfbenchError for more files than a mark can name."""
    text = json.dumps(encode(mark), indent=1)
    if len(text) >= LARGEST:
        raise HfbenchError(f"has too many files to be opened: {len(mark.files):,}", where=mark.reference)
    (folder / MARK).write_text(text, encoding="utf-8")


def refuse_headers_only(folder: Path, what: str) -> None:
    """WeightsAbsent where `what`, the start of a sentence such as `reading values`, needs weights left on a hub."""
    if (mark := read_mark(folder)) is not None:
        raise weights_absent(mark, what)


def weights_absent(mark: RemoteMark, what: str) -> WeightsAbsent:
    """The sentence that says which weights are not here and how to get them."""
    found = f"{what} needs the weights, and only their headers are here"
    return WeightsAbsent(found, where=mark.reference, remedy=f"hfbench pull {mark.reference} fetches them")
