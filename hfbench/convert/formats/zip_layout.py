"""Zip files of stored entries laid out as torch does: data aligned to 64 bytes, checksums to be filled in later."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.convert.formats.zip_directory import CENTRAL, END, END64, LOCAL, LOCAL_BYTES, LOCATOR

ALIGNMENT = 64
WIDE = 0xFFFFFFFF
UTF8 = 0x0800
MIDNIGHT = 0x21
"""The first of January 1980, the earliest date a zip file can tell: files of equal contents are equal."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An entry to come: with its bytes, or, where they are a tensor's, with their number alone."""

    name: str
    size: int
    data: bytes | None = None

    @classmethod
    def of(cls, name: str, data: bytes) -> Slot:
        """An entry whose bytes are known."""
        return cls(name, len(data), data)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an entry's bytes begin, and the two places of its checksum."""

    begin: int
    crc32_at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ZipLayout:
    """The bytes around the slots that have none yet; `end` is the byte after the zip, counted in its file."""

    placed: tuple[Placed, ...]
    fixed: tuple[tuple[int, bytes], ...]
    end: int


def lay_out_zip(slots: Sequence[Slot], begin: int = 0) -> ZipLayout:
    """A zip file that begins at `begin` of a file, which counts as its byte zero.

    Checksums of slots without bytes are zero until they are filled in.
    """
    fixed: list[tuple[int, bytes]] = []
    placed: list[Placed] = []
    directory = b""
    at = 0
    for slot in slots:
        crc32 = zlib.crc32(slot.data) if slot.data is not None else 0
        head = _local(slot, at, crc32)
        placed_here = at + len(head)
        crc_places = (begin + at + 14, len(directory) + 16)
        fixed.append((begin + at, head + (slot.data or b"")))
        placed.append(Placed(begin + placed_here, crc_places))
        directory += _central(slot, at, crc32)
        at = placed_here + slot.size
    ending = directory + _ending(len(slots), len(directory), at)
    fixed.append((begin + at, ending))
    whole = tuple(Placed(each.begin, (each.crc32_at[0], begin + at + each.crc32_at[1])) for each in placed)
    return ZipLayout(whole, tuple(fixed), begin + at + len(ending))


def _local(slot: Slot, at: int, crc32: int) -> bytes:
    name = slot.name.encode()
    size, extra = slot.size, b""
    if slot.size >= WIDE:
        size, extra = WIDE, struct.pack("<HHQQ", 1, 16, slot.size, slot.size)
    unpadded = at + LOCAL_BYTES + len(name) + len(extra) + 4
    padding = -unpadded % ALIGNMENT
    extra += struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    fields = struct.pack("<HHHHHIIIHH", 45 if slot.size >= WIDE else 20, UTF8, 0, 0, MIDNIGHT, crc32, size, size,
                         len(name), len(extra))  # fmt: skip
    return LOCAL + fields + name + extra


def _central(slot: Slot, at: int, crc32: int) -> bytes:
    name = slot.name.encode()
    wide = [value for value in (slot.size, slot.size, at) if value >= WIDE]
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    size, place, needs = min(slot.size, WIDE), min(at, WIDE), 45 if wide else 20
    fields = struct.pack("<HHHHHHIIIHHHHHII", needs, needs, UTF8, 0, 0, MIDNIGHT, crc32, size, size, len(name),
                         len(extra), 0, 0, 0, 0, place)  # fmt: skip
    return CENTRAL + fields + name + extra


def _ending(count: int, size: int, start: int) -> bytes:
    end = struct.pack("<HHHHIIH", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(size, WIDE), min(start, WIDE), 0)
    if count < 0xFFFF and start < WIDE:
        return END + end
    record = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<IQI", 0, start + size, 1)
    return END64 + record + LOCATOR + locator + END + end
