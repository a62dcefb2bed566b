"""A full disk: how it is known among errors, and the one sentence and code with which it stops a sweep."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.errors import FULL, HfbenchError
from hfbench.exits import Exit

IN_WORDS = (*map(os.strerror, FULL), "disk is full", "quota is used up")
"""What stands in a sentence about a full disk, whoever wrote it."""


class NoRoom(HfbenchError):
    """A disk that a sweep needs is full: it stops, and goes on once there is room."""

    exit = Exit.ENVIRONMENT

    def __init__(self, where: object = "") -> None:
        super().__init__("the disk is full: free some space", where=where)


@contextlib.contextmanager
def telling_no_room(where: object) -> Iterator[None]:
    """Turn an error that tells of a full disk into NoRoom."""
    try:
        yield
    except HfbenchError as error:
        if tells_no_room(error):
            raise NoRoom(where) from error
        raise


def tells_no_room(error: HfbenchError | Mapping[str, Any] | None) -> bool:
    """Whether an error, or its parts, tell of a full disk."""
    found = error.found if isinstance(error, HfbenchError) else str((error or {}).get("found") or "")
    return any(words in found for words in IN_WORDS)
