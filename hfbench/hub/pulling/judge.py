"""Hashes a file while it is being downloaded: whatever is there from its beginning without a gap."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.partial import Partial

PIECE = 1 << 20
TICK = 0.25
"""Seconds between two looks at whether anybody still wants the hash."""


class Unwanted(Exception):
    """The download was given up."""


def new_hash(file: HubFile) -> hashlib._Hash:
    """SHA-256 for a large file, else what git names a file by: both are what the hub names it by."""
    if file.sha256:
        return hashlib.sha256()
    return hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)


def digest_as_it_comes(partial: Partial, unwanted: Callable[[], bool]) -> str:
    """The hash of the whole file, read behind the threads that write it; Unwanted when `unwanted` says so."""
    digest, at = new_hash(partial.file), 0
    buffer = memoryview(bytearray(min(PIECE, max(partial.file.size, 1))))
    while at < partial.file.size:
        with partial.changed:
            while not unwanted() and partial.there.prefix <= at:
                partial.changed.wait(TICK)
            end = partial.there.prefix
        if unwanted():
            raise Unwanted
        while at < end and not unwanted():
            count = os.preadv(partial.fd, [buffer[: min(len(buffer), end - at)]], at)
            if count == 0:
                raise OSError(5, "the partial file was cut while it was hashed", str(partial.part))
            digest.update(buffer[:count])
            at += count
    return digest.hexdigest()
