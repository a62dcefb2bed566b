"""Shards: what a client says of the files and xorbs it sent, and what it is told of chunks that are known."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hfbench.registry.xet.hashes import HASH_BYTES, ZERO
from hfbench.registry.xet.xorbs import XorbIndex

TAG = b"HFRepoMetaData\0" + bytes([85, 105, 103, 69, 106, 123, 129, 87, 131, 165, 189, 217, 92, 205, 209, 74, 169])
ENTRY = 48
"""Bytes of the header and of every entry."""
BOOKEND = b"\xff" * HASH_BYTES
WITH_VERIFICATION, WITH_METADATA = 1 << 31, 1 << 30
LAST_VERSION, FOOTER_BYTES, FOOTER_VERSION = 2, 200, 1
MOST_ENTRIES = 4_000_000
_FILE = struct.Struct(f"<{HASH_BYTES}sII8x")
_SEGMENT = struct.Struct(f"<{HASH_BYTES}sIIII")
_XORB = struct.Struct(f"<{HASH_BYTES}sIIII")
_CHUNK = struct.Struct(f"<{HASH_BYTES}sIIII")


class ShardError(ValueError):
    """Bytes that are no shard; `at` is the byte."""

    def __init__(self, found: str, *, at: int) -> None:
        self.at = at
        super().__init__(f"{found} at byte {at:,} of the shard")


class Term(NamedTuple):
    """A stretch of a file: chunks `start` to `end` of a xorb, the last not included, of `length` bytes unpacked."""

    xorb: bytes
    length: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ShardFile:
    """One file: its hash, its stretches and, where the client gave it, its SHA-256 in hexadecimal."""

    hash: bytes
    terms: tuple[Term, ...]
    sha256: str

    @property
    def size(self) -> int:
        """Bytes of content."""
        return sum(term.length for term in self.terms)


def read_shard(body: bytes) -> tuple[ShardFile, ...]:
    """The files a shard tells of; its xorb section is not needed, since each xorb was verified when it came.

    ShardError names the first byte that contradicts the format.
    """
    if len(body) < ENTRY or body[:HASH_BYTES] != TAG:
        raise ShardError("no shard begins", at=0)
    version = int.from_bytes(body[HASH_BYTES : HASH_BYTES + 8], "little")
    if version != LAST_VERSION:
        raise ShardError(f"the version is {version}, this hub reads {LAST_VERSION}", at=HASH_BYTES)
    return tuple(_files(body))


def _files(body: bytes) -> Iterator[ShardFile]:
    at = ENTRY
    while True:
        hash, flags, count = _FILE.unpack(_entry(body, at))
        if hash == BOOKEND:
            return
        entries = count * (2 if flags & WITH_VERIFICATION else 1) + (1 if flags & WITH_METADATA else 0)
        if count > MOST_ENTRIES or at + ENTRY * (entries + 1) > len(body):
            raise ShardError(f"a file claims {count:,} stretches", at=at)
        terms = tuple(_term(body, at + ENTRY * (place + 1)) for place in range(count))
        at += ENTRY * (entries + 1)
        sha256 = _sha256(body[at - ENTRY :]) if flags & WITH_METADATA else ""
        yield ShardFile(hash, terms, sha256)


def _term(body: bytes, at: int) -> Term:
    xorb, _flags, length, start, end = _SEGMENT.unpack(_entry(body, at))
    if start >= end:
        raise ShardError("a stretch has no chunk", at=at)
    return Term(xorb, length, start, end)


def _sha256(entry: bytes) -> str:
    """The SHA-256 is spelled as every hash of Xet: words reversed."""
    return b"".join(entry[at : at + 8][::-1] for at in range(0, HASH_BYTES, 8)).hex()


def _entry(body: bytes, at: int) -> bytes:
    if at + ENTRY > len(body):
        raise ShardError("the shard ends too early", at=len(body))
    return body[at : at + ENTRY]


def known_chunks(xorbs: Mapping[bytes, XorbIndex]) -> bytes:
    """The answer to a question for one chunk: a shard of xorbs with all of their chunks, and of no file.

    Clients ask for one chunk in a thousand: the answer tells of all xorbs they are likely to meet next.
    """
    header = TAG + struct.pack("<QQ", LAST_VERSION, FOOTER_BYTES)
    files = BOOKEND + bytes(ENTRY - HASH_BYTES)
    blocks = b"".join(_block(name, index) for name, index in xorbs.items())
    body = header + files + blocks + BOOKEND + bytes(ENTRY - HASH_BYTES)
    return body + _footer(len(header), len(header) + len(files), len(body), xorbs.values())


def _block(name: bytes, index: XorbIndex) -> bytes:
    rows, begin = [], 0
    for chunk in index.chunks:
        rows.append(_CHUNK.pack(chunk.hash, begin, chunk.length, 0, 0))
        begin += chunk.length
    return _XORB.pack(name, 0, len(rows), begin, index.packed_bytes) + b"".join(rows)


def _footer(files_at: int, xorbs_at: int, end: int, indexes: Collection[XorbIndex]) -> bytes:
    """No lookup tables, no key, no expiry; the totals of the xorbs."""
    lookups = (end, 0) * 3
    numbers = (FOOTER_VERSION, files_at, xorbs_at, *lookups)
    packed = sum(index.packed_bytes for index in indexes)
    unpacked = sum(index.unpacked_bytes for index in indexes)
    tail = (0, 0, *([0] * 6), packed, unpacked, unpacked, end)
    return struct.pack("<9Q", *numbers) + ZERO + struct.pack("<12Q", *tail)


def pack_terms(terms: tuple[Term, ...]) -> bytes:
    """Stretches as bytes for the database."""
    return b"".join(_SEGMENT.pack(term.xorb, 0, term.length, term.start, term.end) for term in terms)


def unpack_terms(packed: bytes) -> tuple[Term, ...]:
    """From what `pack_terms` made."""
    return tuple(Term(xorb, length, start, end) for xorb, _flags, length, start, end in _SEGMENT.iter_unpack(packed))
