"""The header of a GGUF file: metadata and tensor extents, read without numpy and without touching the data."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hfbench.errors import HfbenchError

# Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4
MAX_DEPTH = 4
"""Arrays in arrays: the format sets no limit, no writer needs more than one."""
STRING, ARRAY, BOOL = 8, 9, 7
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Value types with a fixed size, as struct codes."""


class GgufError(HfbenchError):
    """A file that is not GGUF or contradicts itself; `at` is the byte where that shows."""

    def __init__(self, found: str, *, where: object, at: int, remedy: str = "fetch the file again") -> None:
        self.at = at
        super().__init__(f"byte {at}: {found}", where=where, remedy=remedy)


@dataclass(frozen=True)
class GgufTensor:
    """One tensor. `shape` is outermost first, as torch prints it; `type` is ggml's number; `begin` is a file offset."""

    name: str
    shape: tuple[int, ...]
    type: int
    begin: int


@dataclass(frozen=True)
class GgufFile:
    """What the header says. `size` is the length of the whole file in bytes."""

    path: Path
    size: int
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


def read_gguf(path: Path) -> GgufFile:
    """The header of a GGUF file of version 2 or 3; GgufError names the first byte that contradicts the format."""
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except OSError as error:
        raise HfbenchError(f"cannot be read: {error.strerror}", where=path) from error


def _read(path: Path, file: BinaryIO) -> GgufFile:
    size = file.seek(0, 2)
    if not size:
        raise GgufError("the file is empty", where=path, at=0)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data, path)
        if cursor.take(len(MAGIC)) != MAGIC:
            raise GgufError("the file does not begin with GGUF", where=path, at=0, remedy="give a GGUF file")
        version = cursor.number("I")
        if version not in VERSIONS:
            known = " and ".join(map(str, VERSIONS))
            raise GgufError(f"version {version} is not {known}", where=path, at=4, remedy="")
        tensors, pairs = cursor.number("Q"), cursor.number("Q")
        metadata = _metadata(cursor, pairs)
        infos = [_tensor(cursor) for _ in range(cursor.plausible(tensors, least=24, what="tensors"))]
        return GgufFile(path, size, metadata, _placed(cursor, metadata, infos, size))


def _metadata(cursor: _Cursor, pairs: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(cursor.plausible(pairs, least=13, what="metadata entries")):
        at, key = cursor.at, cursor.string()
        if key in found:
            raise GgufError(f"the key {key!r} stands twice", where=cursor.path, at=at)
        found[key] = _value(cursor, cursor.number("I"), depth=0)
    return found


def _value(cursor: _Cursor, kind: int, depth: int) -> Any:
    if kind in SCALARS:
        return cursor.number(SCALARS[kind])
    if kind == STRING:
        return cursor.string()
    if kind != ARRAY or depth >= MAX_DEPTH:
        raise GgufError(f"value type {kind} is not one of the format", where=cursor.path, at=cursor.at)
    inner, count = cursor.number("I"), cursor.number("Q")
    if inner in SCALARS:
        width = struct.calcsize("<" + SCALARS[inner])
        cursor.plausible(count, least=width, what="array items")
        return list(struct.unpack(f"<{count}{SCALARS[inner]}", cursor.take(count * width)))
    return [_value(cursor, inner, depth + 1) for _ in range(cursor.plausible(count, least=8, what="array items"))]


def _tensor(cursor: _Cursor) -> tuple[int, GgufTensor]:
    """Where its entry begins, and the tensor with its offset still counted from the data."""
    at, name, count = cursor.at, cursor.string(), cursor.number("I")
    if not 1 <= count <= MAX_DIMENSIONS:
        raise GgufError(f"tensor {name!r} has {count} dimensions", where=cursor.path, at=at)
    innermost_first = [cursor.number("Q") for _ in range(count)]
    kind, offset = cursor.number("I"), cursor.number("Q")
    return at, GgufTensor(name, tuple(reversed(innermost_first)), kind, offset)


def _placed(
    cursor: _Cursor, metadata: dict[str, Any], infos: list[tuple[int, GgufTensor]], size: int
) -> dict[str, GgufTensor]:
    """The tensors by name, with offsets counted from the beginning of the file."""
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise GgufError(f"alignment {alignment!r} is not a power of two", where=cursor.path, at=cursor.at)
    begin = -(-cursor.at // alignment) * alignment
    placed: dict[str, GgufTensor] = {}
    for at, info in infos:
        if info.name in placed:
            raise GgufError(f"tensor {info.name!r} stands twice", where=cursor.path, at=at)
        if info.begin % alignment or begin + info.begin > size:
            raise GgufError(f"tensor {info.name!r} begins at an impossible offset", where=cursor.path, at=at)
        placed[info.name] = GgufTensor(info.name, info.shape, info.type, begin + info.begin)
    return placed


class _Cursor:
    """Reads forward and never past the end."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise GgufError(f"the header claims {count} more bytes, {left} follow", where=self.path, at=self.at)
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken

    def number(self, code: str) -> Any:
        form = "<" + code
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "surrogateescape")

    def plausible(self, count: int, *, least: int, what: str) -> int:
        """The count itself, unless so many items of `least` bytes cannot follow."""
        if count * least > len(self.data) - self.at:
            raise GgufError(f"the header claims {count} {what}, more than fit the file", where=self.path, at=self.at)
        return count
