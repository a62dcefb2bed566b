"""What a shared object asks of the machine that loads it: architecture, libraries and versions of their symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from hfbench.errors import HfbenchError

MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64"}
"""e_machine of elf(5), as `uname -m` spells it."""

MOST_SEGMENTS = 256
MOST_ENTRIES = 4096
LONGEST_NAME = 4096

LOAD, DYNAMIC = 1, 2
NEEDED, STRINGS, SONAME, VERSIONS = 1, 5, 14, 0x6FFFFFFE


class ElfError(HfbenchError):
    """Bytes are no shared object that could be read."""


@dataclass(frozen=True, kw_only=True)
class Elf:
    """The demands of a shared object. `versions` are version names of symbols by library, as GLIBC_2.34."""

    machine: str
    needed: tuple[str, ...]
    soname: str
    versions: dict[str, tuple[str, ...]]

    @property
    def glibc(self) -> str:
        """The newest version of the C library it asks for, such as `2.34`; empty when it names none."""
        told = [name[6:] for names in self.versions.values() for name in names if name.startswith("GLIBC_")]
        numbered = [each for each in told if each.replace(".", "").isdecimal()]
        return max(numbered, key=lambda each: [int(part) for part in each.split(".") if part], default="")


def read_elf(file: BinaryIO) -> Elf:
    """Read the demands of a 64-bit little-endian shared object; ElfError says what else the bytes are."""
    try:
        return _Reader(file).read()
    except (struct.error, OverflowError, ValueError, OSError) as error:
        raise ElfError(f"the shared object is cut off or damaged ({error})") from None


class _Reader:
    """Follows the dynamic segment, which is what the loader of the system follows."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._loads: list[tuple[int, int, int]] = []

    def read(self) -> Elf:
        head = self._at(0, 64)
        if head[:4] != b"\x7fELF":
            raise ElfError("it does not begin as a shared object does")
        if head[4:6] != b"\x02\x01":
            raise ElfError("it is no 64-bit little-endian shared object")
        machine, place, size, count = struct.unpack_from("<18xH12xQ14xHH", head)
        entries = self._dynamic(place, size, count)
        named = {tag: value for tag, value in entries if tag not in (NEEDED,)}
        strings = self._offset(named[STRINGS]) if STRINGS in named else 0
        return Elf(
            machine=MACHINES.get(machine, f"machine {machine}"),
            needed=tuple(self._string(strings, value) for tag, value in entries if tag == NEEDED),
            soname=self._string(strings, named[SONAME]) if SONAME in named else "",
            versions=dict(self._versions(self._offset(named[VERSIONS]), strings)) if VERSIONS in named else {},
        )

    def _dynamic(self, place: int, size: int, count: int) -> list[tuple[int, int]]:
        if size != 56 or count > MOST_SEGMENTS:
            raise ElfError("its table of segments is damaged")
        found: list[tuple[int, int]] = []
        for number in range(count):
            kind, offset, address, held = struct.unpack_from("<I4xQQ8xQ", self._at(place + number * size, size))
            if kind == LOAD:
                self._loads.append((address, offset, held))
            if kind == DYNAMIC:
                raw = self._at(offset, min(held, 16 * MOST_ENTRIES))
                found = [(tag, value) for tag, value in struct.iter_unpack("<qQ", raw[: len(raw) // 16 * 16]) if tag]
        return found

    def _versions(self, place: int, strings: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Of the section .gnu.version_r: libraries, and versions of each."""
        for _ in range(MOST_ENTRIES):
            count, library, first, onward = struct.unpack("<2xHIII", self._at(place, 16))
            names, at = [], place + first
            for _ in range(min(count, MOST_ENTRIES)):
                name, step = struct.unpack("<8xII", self._at(at, 16))
                names.append(self._string(strings, name))
                at += step
                if not step:
                    break
            yield self._string(strings, library), tuple(names)
            if not onward:
                return
            place += onward

    def _offset(self, address: int) -> int:
        for begin, offset, held in self._loads:
            if begin <= address < begin + held:
                return address - begin + offset
        raise ElfError("an address of it lies in no segment")

    def _string(self, strings: int, offset: int) -> str:
        self._file.seek(strings + offset)
        raw, end, _ = self._file.read(LONGEST_NAME).partition(b"\0")
        if not end:
            raise ElfError("a name in it has no end")
        return raw.decode("utf-8", "replace")

    def _at(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        raw = self._file.read(size)
        if len(raw) < size:
            raise ElfError("the shared object is cut off")
        return raw
