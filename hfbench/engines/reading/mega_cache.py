"""Packed caches of torch.compile: the checksum and the kinds of entries. Entries are pickles and stay unopened."""

from __future__ import annotations

import base64
import binascii
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from hfbench.engines.reading.found import Found, NoEngine, facts
from hfbench.models.files import open_regular

# torch.utils._appending_byte_serializer: a CRC-32, a version, then for each kind its name, a count, and entries of a
# key and a content, each behind its length; numbers are of eight bytes, the first the highest, names are base64.
VERSION = 1
CHECKSUM = 4
CHUNK = 1 << 20
LONGEST_NAME = 4096
MOST_KINDS = 64
NO_FILE = 1 << 48
"""Bytes that no file has."""
REBUILD = "build it again with hfbench engine build --builder compile"


def read_mega_cache(path: Path, folder: Path) -> Found:
    """What a packed cache holds; NoEngine where it is none or is damaged."""
    with open_regular(path, folder) as file:
        size = os.fstat(file.fileno()).st_size
        if not looks_like_cache(file):
            raise NoEngine("is no packed cache of torch.compile", where=path)
        faults = () if _checksum(file) else ("the checksum does not fit: torch will refuse the cache",)
        kinds = {} if faults else _kinds(file, size)
    return Found(
        kind="compile",
        what="torch.compile cache",
        path=path,
        size=size,
        facts=facts(entries=", ".join(f"{count} {kind}" for kind, count in kinds.items())),
        faults=faults,
        silent=(
            "the torch, Triton, CUDA and GPU it is keyed by: another one compiles anew without a word",
            "the model and the shapes it was made for",
        ),
    )


def looks_like_cache(file: BinaryIO) -> bool:
    """Whether a file begins as a packed cache does."""
    file.seek(CHECKSUM)
    return file.read(8) == VERSION.to_bytes(8, "big")


def _checksum(file: BinaryIO) -> bool:
    file.seek(0)
    told, counted = int.from_bytes(file.read(CHECKSUM), "big"), 0
    while part := file.read(CHUNK):
        counted = zlib.crc32(part, counted)
    return told == counted


def _kinds(file: BinaryIO, size: int) -> Counter[str]:
    """How many entries of each kind there are; stops where lengths stop making sense."""
    found: Counter[str] = Counter()
    file.seek(CHECKSUM + 8)
    while file.tell() < size and len(found) < MOST_KINDS:
        length = _number(file)
        if length > LONGEST_NAME:
            break
        try:
            kind = base64.b64decode(file.read(length), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            break
        for _ in range(_number(file)):
            if not _skipped_entry(file, size):
                return found
            found[kind] += 1
    return found


def _skipped_entry(file: BinaryIO, size: int) -> bool:
    """Go behind a key and a content; False where the file ends before them."""
    for _ in range(2):
        file.seek(_number(file), os.SEEK_CUR)
    return file.tell() <= size


def _number(file: BinaryIO) -> int:
    """A number of eight bytes; what no file can hold where the file ends."""
    raw = file.read(8)
    return min(int.from_bytes(raw, "big"), NO_FILE) if len(raw) == 8 else NO_FILE
