"""The peer of reading values: one pass over a file that makes a checksum of it, as `sha256sum` and `cksum` do."""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections.abc import Callable

BLOCK = 2**20


def crc32(read: Callable[[memoryview], int]) -> str:
    """zlib's CRC of everything read."""
    room, found = memoryview(bytearray(BLOCK)), 0
    while size := read(room):
        found = zlib.crc32(room[:size], found)
    return f"{found:08x}"


def sha256(read: Callable[[memoryview], int]) -> str:
    """OpenSSL's SHA-256 of everything read."""
    room, found = memoryview(bytearray(BLOCK)), hashlib.sha256()
    while size := read(room):
        found.update(room[:size])
    return found.hexdigest()


if __name__ == "__main__":
    make = {"crc32": crc32, "sha256": sha256}[sys.argv[1]]
    for name in sys.argv[2:]:
        with open(name, "rb", buffering=0) as file:
            print(make(file.readinto), name)
