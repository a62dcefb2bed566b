"""A safetensors file written front to back: the header first, then each tensor's bytes as they come."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ITEM_BYTES = {"BF16": 2, "F16": 2, "F32": 4}
ALIGNMENT = 8
"""The header is padded with spaces so that data begins at a multiple of this."""


@dataclass(frozen=True)
class Entry:
    """One tensor to come: its name, dtype in the format's spelling, and shape, outermost first."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Length of its data."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


class SafetensorsWriter:
    """Writes the tensors announced at its making, in that order, and holds none of them."""

    def __init__(self, file: BinaryIO, entries: Sequence[Entry]) -> None:
        self._file, self._entries = file, list(entries)
        file.write(header_of(self._entries))

    def write(self, name: str, blocks: Iterable[bytes]) -> int:
        """Write the next tensor in blocks and return its bytes; ValueError when it is not the one announced."""
        entry = self._entries.pop(0) if self._entries else None
        if entry is None or entry.name != name:
            raise ValueError(f"{name!r} was written, {entry.name if entry else 'nothing'!r} was announced")
        written = sum(self._file.write(block) for block in blocks)
        if written != entry.bytes:
            raise ValueError(f"{name!r}: {written} bytes written, {entry.bytes} announced")
        return written

    def finish(self) -> None:
        """ValueError when announced tensors were not written."""
        if self._entries:
            raise ValueError(f"{len(self._entries)} announced tensors were not written")


def header_of(entries: Iterable[Entry]) -> bytes:
    """The length field and the JSON header for tensors that follow each other without holes."""
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for entry in entries:
        table[entry.name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [begin, begin + entry.bytes],
        }
        begin += entry.bytes
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def written(path: Path) -> tuple[int, int]:
    """Tensors and bytes of data in a file this writer made."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(length))
    return len(table) - 1, path.stat().st_size - 8 - length
