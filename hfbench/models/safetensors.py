"""Reads the header of a safetensors file and checks all of what the format promises; data is never read."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import BinaryIO

from hfbench.models.columns import TensorColumns
from hfbench.models.header_exact import ExactReader
from hfbench.models.header_rows import HeaderError, Kind, Rows, check_names, shown
from hfbench.models.header_usual import read_usual
from hfbench.models.magic import LOOK, is_lfs_pointer, lfs_size, recognise
from hfbench.models.problem import counted, quoted

PREFIX = 8
"""Bytes of the length field: unsigned, little-endian."""

MAX_HEADER = 100_000_000
"""Bytes; the limit that the format's own reader sets."""


@dataclass(frozen=True, slots=True)
class Header:
    """The tensors of one file, a row each in the order of the header. Offsets count from the start of the data.

    A row's kind is (dtype, shape, bytes); kinds are few, so rows hold only their number.
    """

    names: list[str]
    kinds: list[Kind]
    kind_ids: array[int]
    begins: array[int]
    metadata: dict[str, str]
    notes: tuple[tuple[str, str], ...]
    """Code and sentence of what is accepted but breaks the format's letter."""
    header_bytes: int
    data_bytes: int

    def __len__(self) -> int:
        return len(self.names)

    def add_to(self, columns: TensorColumns, shard: str) -> None:
        """Append the tensors to a checkpoint's columns."""
        columns.add_rows(shard, self.names, self.kinds, self.kind_ids, self.begins)


def read_header(file: BinaryIO, size: int) -> Header:
    """Tensor names, dtypes and extents of a file of `size` bytes.

    Raises HeaderError with a stable `code`, the byte offset `at` and the tensor that contradict the format.
    """
    if size < PREFIX:
        found = f"has {size} bytes, too few for the length field" if size else "the file is empty"
        raise HeaderError("st_too_small", found, at=size, remedy="fetch the file again")
    file.seek(0)
    head = file.read(LOOK)
    length = int.from_bytes(head[:PREFIX], "little")
    if length > min(MAX_HEADER, size - PREFIX):
        raise _impossible_length(length, size, head)
    if length == 0:
        raise HeaderError("st_bad_json", "the header is empty", at=0)
    if head[PREFIX : PREFIX + 1] not in b"{ \t\n\r\xef":
        what = recognise(head)
        found = f"this is {what}" if what else f"byte {PREFIX} is 0x{head[PREFIX]:02x}, a header begins with {{"
        raise HeaderError("not_safetensors" if what else "st_bad_json", found, at=PREFIX)
    rows = read_usual(file, PREFIX, length) or ExactReader(file, PREFIX, length).read()
    check_names(rows, file, PREFIX, length)
    data_bytes = size - PREFIX - length
    _check_extents(rows, data_bytes, PREFIX + length)
    return Header(
        rows.names,
        rows.kinds,
        rows.kind_ids,
        rows.begins,
        rows.metadata,
        tuple(rows.notes),
        PREFIX + length,
        data_bytes,
    )


def _impossible_length(length: int, size: int, head: bytes) -> HeaderError:
    what = recognise(head)
    if is_lfs_pointer(head):
        stands_for = lfs_size(head)
        file = f"the file of {stands_for:,} bytes" if stands_for is not None else "the file itself"
        return HeaderError("lfs_pointer", f"this is a git-lfs pointer, not {file}", at=0, remedy="run git lfs pull")
    if what:
        return HeaderError("not_safetensors", f"this is {what}", at=0, remedy="fetch the file again")
    if length > MAX_HEADER:
        found = f"the header claims {length:,} bytes, the format allows {MAX_HEADER:,}"
        return HeaderError("st_header_too_large", found, at=0)
    found = f"the header claims {length:,} bytes, {size - PREFIX:,} follow"
    return HeaderError("st_truncated_header", found, at=0, remedy="fetch the file again")


def _check_extents(rows: Rows, data_bytes: int, data_start: int) -> None:
    """Every tensor is as long as its dtype and shape say, and together they fill the data once, without a gap."""
    if rows.in_order and data_bytes == (rows.ends[-1] if rows.ends else 0):
        return
    sizes = [kind[2] for kind in rows.kinds]
    try:
        edges = array("Q", accumulate(map(sizes.__getitem__, rows.kind_ids), initial=0))
    except OverflowError:
        edges = array("Q", [0])
    if rows.ends == edges[1:] and rows.begins == edges[:-1] and data_bytes == edges[-1]:
        return  # in order and complete, as nearly every file is
    for row, kind in enumerate(rows.kind_ids):
        if rows.ends[row] - rows.begins[row] != sizes[kind]:
            raise _wrong_size(rows, row, data_start)
    _check_layout(rows, data_bytes, data_start)


def _check_layout(rows: Rows, data_bytes: int, data_start: int) -> None:
    place, before = 0, -1
    for row in _in_file_order(rows):
        begin, end, name = rows.begins[row], rows.ends[row], rows.names[row]
        at = data_start + begin
        if begin < place:
            found = f"tensor {quoted(name)} starts at data byte {begin:,}, inside {quoted(rows.names[before])}"
            raise HeaderError("st_overlap", found, at=at, tensor=name)
        if begin > place:
            found = f"{counted(begin - place, 'byte')} of no tensor before {quoted(name)}"
            raise HeaderError("st_hole", found, at=data_start + place, tensor=name)
        if end > data_bytes:
            found = f"tensor {quoted(name)} ends at data byte {end:,}, the file has {data_bytes:,}"
            raise HeaderError("st_truncated", found, at=at, tensor=name, remedy="fetch the file again")
        place, before = end, row
    if place != data_bytes:
        found = f"{counted(data_bytes - place, 'byte')} of no tensor after the last one"
        raise HeaderError("st_trailing", found, at=data_start + place)


def _in_file_order(rows: Rows) -> Iterator[int]:
    return iter(sorted(range(len(rows.names)), key=lambda row: (rows.begins[row], rows.ends[row])))


def _wrong_size(rows: Rows, row: int, data_start: int) -> HeaderError:
    dtype, shape, size = rows.kinds[rows.kind_ids[row]]
    name, given = rows.names[row], rows.ends[row] - rows.begins[row]
    if given < 0:
        found = f"tensor {quoted(name)} ends at data byte {rows.ends[row]:,}, before it begins"
        return HeaderError("st_bad_offsets", found, at=data_start, tensor=name)
    found = f"tensor {quoted(name)} has {given:,} bytes, {dtype} {shown(shape)} takes {size:,}"
    return HeaderError("st_size_mismatch", found, at=data_start + rows.begins[row], tensor=name)


__all__ = ["MAX_HEADER", "PREFIX", "Header", "HeaderError", "read_header"]
