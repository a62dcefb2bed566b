"""The entries of a zip file that torch wrote: where the bytes of each lie, checked against the file's size."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from hfbench.errors import HfbenchError
from hfbench.models.problem import quoted

LOCAL, CENTRAL, END, END64, LOCATOR = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
LOCAL_BYTES, CENTRAL_BYTES, END_BYTES, END64_BYTES, LOCATOR_BYTES = 30, 46, 22, 56, 20

MOST_ENTRIES = 1_000_000
MOST_DIRECTORY = 256 << 20
"""Bytes of the directory: a million entries with names of the usual length have less."""

COMMENT = 65535
"""The longest comment after the end record."""


class ZipError(HfbenchError):
    """A zip file is damaged, or of a kind torch does not write; `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that is stored as it is: its bytes lie at `begin` of the file."""

    name: str
    begin: int
    size: int
    crc32: int


def read_exactly(descriptor: int, size: int, at: int) -> bytes:
    """Bytes of a file; ZipError when it does not have so many."""
    found = os.pread(descriptor, size, at)
    while found and len(found) < size and (more := os.pread(descriptor, size - len(found), at + len(found))):
        found += more
    if len(found) < size:
        raise ZipError(f"ends at byte {at + len(found):,}, inside its directory")
    return found


def read_directory(descriptor: int, begin: int, end: int) -> Mapping[str, Entry]:
    """The entries of the zip file that takes the bytes `begin` to `end` of a file, by name.

    ZipError for compressed, encrypted, overlapping and repeated entries, and for any that reaches out of these bytes.
    """
    count, size, start = _end_record(descriptor, begin, end)
    if count > MOST_ENTRIES or size > MOST_DIRECTORY:
        raise ZipError(f"its directory of {count:,} entries and {size:,} bytes is too large")
    if start + size > end - begin:
        raise ZipError(f"its directory is said to lie at byte {start:,}, outside of the file")
    raw = read_exactly(descriptor, size, begin + start)
    found, at = dict[str, Entry](), 0
    for _ in range(count):
        entry, at = _entry(raw, at, descriptor, begin, start)
        if entry.name in found:
            raise ZipError(f"two entries are called {quoted(entry.name)}")
        found[entry.name] = entry
    last = begin
    for entry in sorted(found.values(), key=lambda each: (each.begin, each.size)):
        if entry.begin < last:
            raise ZipError(f"entry {quoted(entry.name)} overlaps another one")
        last = entry.begin + entry.size
    return found


def _end_record(descriptor: int, begin: int, end: int) -> tuple[int, int, int]:
    """Entries, bytes and place of the directory, from the last bytes of the file."""
    length = min(end - begin, END_BYTES + COMMENT)
    tail = read_exactly(descriptor, length, end - length)
    place = len(tail) - END_BYTES
    if place < 0 or tail[place : place + 4] != END:
        place = tail.rfind(END)
        if place < 0 or place + END_BYTES > len(tail):
            raise ZipError("has no directory at its end", remedy="it was cut off: fetch it again")
    count, size, start = struct.unpack_from("<HII", tail, place + 10)
    if count != 0xFFFF and 0xFFFFFFFF not in (size, start):
        return count, size, start
    at = end - length + place - LOCATOR_BYTES
    locator = read_exactly(descriptor, LOCATOR_BYTES, at) if at >= begin else b""
    if locator[:4] != LOCATOR:
        raise ZipError("is large, and the record that says where its directory lies is missing")
    (record_at,) = struct.unpack_from("<Q", locator, 8)
    if record_at + END64_BYTES > end - begin:
        raise ZipError(f"its directory is said to be described at byte {record_at:,}, outside of the file")
    record = read_exactly(descriptor, END64_BYTES, begin + record_at)
    if record[:4] != END64:
        raise ZipError("the record that describes its directory is damaged")
    count, size, start = struct.unpack_from("<QQQ", record, 32)
    return count, size, start


def _entry(raw: bytes, at: int, descriptor: int, begin: int, directory: int) -> tuple[Entry, int]:
    """One entry of the directory at byte `at` of it, and where the next one begins."""
    if raw[at : at + 4] != CENTRAL or at + CENTRAL_BYTES > len(raw):
        raise ZipError(f"its directory is damaged at byte {at:,}")
    flags, method = struct.unpack_from("<HH", raw, at + 8)
    crc32, packed, size, name_length, extra_length, comment_length = struct.unpack_from("<IIIHHH", raw, at + 16)
    (place,) = struct.unpack_from("<I", raw, at + 42)
    name_at = at + CENTRAL_BYTES
    following = name_at + name_length + extra_length + comment_length
    if following > len(raw):
        raise ZipError(f"its directory is damaged at byte {at:,}")
    name = raw[name_at : name_at + name_length].decode("utf-8", "backslashreplace")
    extra = raw[name_at + name_length : name_at + name_length + extra_length]
    size, packed, place = _wide(extra, size, packed, place)
    if method != 0 and "/code/" in name:
        found = "is a TorchScript program, not a file of tensors"
        raise ZipError(found, remedy="save its state_dict() with torch.save")
    if method != 0 or size != packed:
        raise ZipError(f"entry {quoted(name)} is compressed, which torch never does")
    if flags & 1:
        raise ZipError(f"entry {quoted(name)} is encrypted")
    if place + LOCAL_BYTES > directory:
        raise ZipError(f"entry {quoted(name)} is said to lie at byte {place:,}, outside of the file")
    local = read_exactly(descriptor, LOCAL_BYTES, begin + place)
    if local[:4] != LOCAL:
        raise ZipError(f"entry {quoted(name)} does not begin at byte {place:,} as the directory says")
    data = place + LOCAL_BYTES + sum(struct.unpack_from("<HH", local, 26))
    if data + size > directory:
        raise ZipError(f"entry {quoted(name)} has {size:,} bytes by the directory, more than the file holds")
    return Entry(name, begin + data, size, crc32), following


def _wide(extra: bytes, size: int, packed: int, place: int) -> tuple[int, int, int]:
    """Size, stored size and place, of which the extra field holds those that 32 bits cannot."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            size, packed, place = (
                next(wide, value) if value == 0xFFFFFFFF else value for value in (size, packed, place)
            )
        at += 4 + length
    return size, packed, place
