"""Files made with all that is not tensors, before the first tensor is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.stream.outputs import write_all
from hfbench.convert.stream.write import Landed, Work


def lay_out(folder: Path, layouts: Iterable[FileLayout], work: Sequence[Work], landed: Mapping[int, Landed]) -> None:
    """Give every file its size and its fixed bytes, and the checksums of the tensors that are there already."""
    for layout in layouts:
        path = folder / layout.path
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(descriptor, layout.size)
            for at, data in layout.fixed:
                write_all(descriptor, memoryview(data), at, path)
        finally:
            os.close(descriptor)
    for number, each in landed.items():
        if places := work[number].piece.crc32_at:
            _write_checksum(folder / work[number].path, each.crc32, places)


def _write_checksum(path: Path, crc32: int, places: Iterable[int]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for at in places:
            write_all(descriptor, memoryview(crc32.to_bytes(4, "little")), at, path)
    finally:
        os.close(descriptor)
