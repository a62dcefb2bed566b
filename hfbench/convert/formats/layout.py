"""How a file looks around the tensors it will hold, known before the first of them is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hfbench.convert.boxes import TensorSpec
from hfbench.models.dtypes import BITS


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a target that lie together in a file, from byte `begin` of it on; most targets are one piece.

    `crc32_at` says where the CRC-32 of its bytes belongs (little-endian, 4 bytes): zip files keep it in two places.
    """

    target: str
    row: int
    row_end: int
    begin: int
    crc32_at: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """Every byte of a file but those of its tensors: it can be filled in any order, by several writers, and resumed.

    `path` is relative to the output folder. `fixed` are stretches as (offset, bytes); what neither they nor the pieces
    fill is zero.
    """

    path: str
    size: int
    pieces: tuple[Piece, ...] = ()
    fixed: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def plain(cls, path: str, data: bytes) -> FileLayout:
        """A file without tensors."""
        return cls(path=path, size=len(data), fixed=((0, data),))


def bytes_of(spec: TensorSpec) -> int:
    """Bytes that a tensor takes in a file. ValueError for a dtype that is not known or a broken last byte."""
    if spec.dtype not in BITS:
        raise ValueError(f"{spec.name}: dtype {spec.dtype} is not known")
    bits = spec.rows * spec.columns * BITS[spec.dtype]
    if bits % 8:
        raise ValueError(f"{spec.name}: {bits} bits are no whole bytes")
    return bits // 8


def row_bytes(spec: TensorSpec) -> int:
    """Bytes of one row of a tensor as a matrix. ValueError where rows are no whole bytes."""
    bits = spec.columns * BITS[spec.dtype]
    if bits % 8:
        raise ValueError(f"{spec.name}: a row of {bits} bits is no whole bytes")
    return bits // 8


def bytes_by_file(layouts: Iterable[FileLayout], specs: Iterable[TensorSpec]) -> dict[str, int]:
    """Bytes of tensors in each file that holds any."""
    rows = {spec.name: row_bytes(spec) for spec in specs}
    return {
        layout.path: sum((piece.row_end - piece.row) * rows[piece.target] for piece in layout.pieces)
        for layout in layouts
        if layout.pieces
    }


def key_of(name: str) -> str:
    """A tensor's name inside its file: `mp_rank_00:decoder.x` is `decoder.x` there."""
    rank, found, rest = name.partition(":")
    return rest if found and rank.startswith("mp_rank_") else name
