"""Looks at the values of the smallest tensors, where a NaN costs least to find."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest

from hfbench.checks.subject import Subject
from hfbench.models.columns import TensorInfo
from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError

MOST_BYTES = 2**20
"""Read in all: norms and biases of any model, the whole of a tiny one."""

MOST_TENSORS = 256

_FORMATS: dict[str, tuple[str, int, int]] = {
    "F16": ("H", 0x7C00, 0x03FF),
    "BF16": ("H", 0x7F80, 0x007F),
    "F32": ("I", 0x7F800000, 0x007FFFFF),
    "F64": ("Q", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "C64": ("I", 0x7F800000, 0x007FFFFF),
    "F8_E5M2": ("B", 0x7C, 0x03),
    "F8_E4M3": ("B", 0x7F, 0x7F),
    "F8_E8M0": ("B", 0xFF, 0xFF),
}
"""Array type, exponent bits and fraction bits; all exponent bits set means NaN, or Inf with no fraction.

The last two have no infinity: one pattern alone is NaN. A complex number is two of float32.
"""


@dataclass(frozen=True, slots=True)
class NotFinite:
    """A tensor that holds NaN or an infinity, and how many of each."""

    tensor: TensorInfo
    nans: int
    infinities: int


@dataclass(frozen=True, slots=True)
class Glance:
    """What was looked at, and what is not finite in it."""

    tensors: int
    bytes: int
    found: tuple[NotFinite, ...]


def glance(subject: Subject) -> Glance:
    """The values of the smallest floating tensors, up to 1 MiB in all."""
    if subject.headers_only:
        return Glance(0, 0, ())
    columns = subject.checkpoint.columns
    floating = {number for number, dtype in enumerate(columns.dtypes) if dtype in _FORMATS}
    rows = (row for row in range(len(columns)) if columns.dtype_ids[row] in floating and columns.sizes[row])
    chosen, total = [], 0
    for row in nsmallest(MOST_TENSORS, rows, key=columns.sizes.__getitem__):
        total += columns.sizes[row]
        if total > MOST_BYTES:
            total -= columns.sizes[row]
            break
        chosen.append(columns[row])
    return Glance(len(chosen), total, tuple(_not_finite(subject, chosen)))


def data_starts(subject: Subject) -> dict[str, int]:
    """The byte at which the data section begins, by shard."""
    return {shard.name: shard.header_bytes for shard in subject.checkpoint.shards}


def _not_finite(subject: Subject, tensors: list[TensorInfo]) -> Iterator[NotFinite]:
    starts = data_starts(subject)
    for shard in dict.fromkeys(each.shard for each in tensors):
        try:
            with open_regular(subject.folder / shard, subject.folder) as file:
                for each in (tensor for tensor in tensors if tensor.shard == shard):
                    file.seek(starts[shard] + each.begin)
                    nans, infinities = count_not_finite(file.read(each.bytes), each.dtype)
                    if nans or infinities:
                        yield NotFinite(each, nans, infinities)
        except (ModelError, OSError):
            continue  # the header was read a moment ago: another rule tells what is wrong with the file


def count_not_finite(raw: bytes, dtype: str) -> tuple[int, int]:
    """NaNs and infinities among little-endian values of a floating dtype."""
    kind, exponent, fraction = _FORMATS[dtype]
    values = array(kind)
    values.frombytes(raw[: len(raw) - len(raw) % values.itemsize])
    odd = [value & fraction for value in values if value & exponent == exponent]
    nans = sum(1 for value in odd if value)
    return nans, len(odd) - nans
