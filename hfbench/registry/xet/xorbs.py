"""Xorbs: chunks behind each other, each with a header of eight bytes. Read, verified and unpacked here."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import lz4.frame

from hfbench.registry.xet.hashes import HASH_BYTES, chunk_hash, root_hash

HEADER = 8
FOOTER = b"XETBLOB"
"""What ends the list of chunks, where the end of the body does not."""
LARGEST_CHUNK = 16 << 20
"""Bytes of one chunk, packed or not: clients cut at 128 KiB, the field could claim 16 MiB."""
MOST_CHUNKS = 64 << 10
MOST_UNPACKED = 128 << 20
"""Bytes of content of one xorb: clients put 64 MiB into one."""
NONE, LZ4, GROUPED_LZ4 = 0, 1, 2
_ROW = struct.Struct(f"<II{HASH_BYTES}s")


class XorbError(ValueError):
    """A body that is no xorb, or not the one it was said to be; `at` is the byte."""

    def __init__(self, found: str, *, at: int) -> None:
        self.at = at
        super().__init__(f"{found} at byte {at:,} of the xorb")


class Chunk(NamedTuple):
    """Where the packed chunk ends in the xorb (header included), its unpacked length, and its hash."""

    end: int
    length: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class XorbIndex:
    """The chunks of a xorb in their order; 40 bytes a chunk when packed."""

    chunks: tuple[Chunk, ...]

    def pack(self) -> bytes:
        """As bytes for the database."""
        return b"".join(_ROW.pack(*chunk) for chunk in self.chunks)

    @classmethod
    def unpack(cls, packed: bytes) -> XorbIndex:
        """From what `pack` made."""
        return cls(tuple(map(Chunk._make, _ROW.iter_unpack(packed))))

    @property
    def packed_bytes(self) -> int:
        """Bytes of all chunks with their headers."""
        return self.chunks[-1].end if self.chunks else 0

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of content."""
        return sum(chunk.length for chunk in self.chunks)

    def begin(self, place: int) -> int:
        """The byte at which the chunk of this place begins."""
        return self.chunks[place - 1].end if place else 0


def verify_xorb(file: BinaryIO, size: int, name: bytes) -> XorbIndex:
    """The index of a xorb after every chunk was unpacked and hashed; XorbError unless the tree's hash is its name."""
    index = XorbIndex(tuple(_read_chunks(file, size)))
    found = root_hash((chunk.hash, chunk.length) for chunk in index.chunks)
    if not index.chunks or found != name:
        raise XorbError("the content is not what the name says", at=0)
    return index


def _read_chunks(file: BinaryIO, size: int) -> Iterator[Chunk]:
    file.seek(0)
    at = count = total = 0
    while at < size:
        header = file.read(HEADER)
        if header.startswith(FOOTER):
            return
        count += 1
        if count > MOST_CHUNKS:
            raise XorbError(f"there are more than {MOST_CHUNKS:,} chunks", at=at)
        packed, scheme, length = split_header(header, at)
        total += length
        if total > MOST_UNPACKED:
            raise XorbError(f"there are more than {MOST_UNPACKED >> 20} MiB of content", at=at)
        payload = file.read(packed)
        if len(payload) < packed:
            raise XorbError("the body ends inside a chunk", at=at)
        at += HEADER + packed
        yield Chunk(at, length, chunk_hash(unpacked(payload, scheme, length, at)))


def split_header(header: bytes, at: int) -> tuple[int, int, int]:
    """Packed length, scheme and unpacked length of a chunk header at byte `at`; XorbError when it is none."""
    if len(header) < HEADER or header[0] != 0:
        raise XorbError("no chunk begins", at=at)
    packed, scheme = int.from_bytes(header[1:4], "little"), header[4]
    length = int.from_bytes(header[5:8], "little")
    if scheme not in (NONE, LZ4, GROUPED_LZ4):
        raise XorbError(f"a chunk is packed by the unknown scheme {scheme}", at=at)
    if not 0 < length <= LARGEST_CHUNK or not 0 < packed <= LARGEST_CHUNK:
        raise XorbError(f"a chunk claims {length:,} bytes", at=at)
    return packed, scheme, length


def unpacked(payload: bytes | memoryview, scheme: int, length: int, at: int) -> bytes:
    """The content of a chunk; XorbError unless it has `length` bytes."""
    data = bytes(payload) if scheme == NONE else _inflated(payload, length, at)
    if len(data) != length:
        raise XorbError(f"a chunk of {length:,} bytes unpacks to {len(data):,}", at=at)
    return ungrouped(data) if scheme == GROUPED_LZ4 else data


def _inflated(payload: bytes | memoryview, length: int, at: int) -> bytes:
    """One lz4 frame, never more than one byte beyond what was announced: a small body cannot ask for much memory."""
    try:
        inflater = lz4.frame.LZ4FrameDecompressor()
        return bytes(inflater.decompress(payload, max_length=length + 1))
    except (RuntimeError, EOFError) as error:
        raise XorbError("a chunk is no lz4 frame", at=at) from error


def ungrouped(data: bytes) -> bytes:
    """Bytes in their order again, where every fourth was put together."""
    out = bytearray(len(data))
    begin = 0
    for place in range(4):
        count = (len(data) + 3 - place) // 4
        out[place::4] = data[begin : begin + count]
        begin += count
    return bytes(out)


def read_range(file: BinaryIO, index: XorbIndex, start: int, end: int, *, hashed: bool = True) -> Iterator[bytes]:
    """The contents of chunks `start` to `end`, the last not included; XorbError where the file was damaged.

    Not hashed is for who hashes the whole anyway.
    """
    begin = index.begin(start)
    file.seek(begin)
    packed = memoryview(file.read(index.chunks[end - 1].end - begin))
    for place in range(start, end):
        at, chunk = index.begin(place), index.chunks[place]
        row = packed[at - begin : chunk.end - begin]
        packed_length, scheme, length = split_header(bytes(row[:HEADER]), at)
        if packed_length != len(row) - HEADER or length != chunk.length:
            raise XorbError("a chunk is not as long as it was", at=at)
        data = unpacked(row[HEADER:], scheme, length, at)
        if hashed and chunk_hash(data) != chunk.hash:
            raise XorbError("a chunk is not what it was", at=at)
        yield data


def pack_xorb(contents: Sequence[bytes]) -> tuple[bytes, bytes]:
    """A xorb of these chunks and its name; chunks are packed by lz4 where that makes them smaller."""
    parts, nodes = [], []
    for data in contents:
        payload, scheme = lz4.frame.compress(data), LZ4
        if len(payload) >= len(data):
            payload, scheme = data, NONE
        parts += [bytes(1), len(payload).to_bytes(3, "little"), bytes([scheme]), len(data).to_bytes(3, "little")]
        parts.append(payload)
        nodes.append((chunk_hash(data), len(data)))
    return b"".join(parts), root_hash(nodes)
