"""Pairs the tensors of two checkpoints by name, whatever files they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hfbench.models.columns import TensorColumns, TensorInfo
from hfbench.models.diff.facts import DtypeChange, Rename, ShapeChange, Tensor
from hfbench.models.diff.rename import find_renames


@dataclass(frozen=True, slots=True)
class Pairing:
    """Rows of A and B that are one tensor, and the names that only one side has."""

    pairs: tuple[tuple[int, int], ...]
    added: tuple[Tensor, ...]
    removed: tuple[Tensor, ...]
    renamed: tuple[Rename, ...]


def pair_tensors(a: TensorColumns, b: TensorColumns, include: Sequence[str] = ()) -> Pairing:
    """Tensors of one name, then those that a rule renames; `include` keeps those whose name on either side matches."""
    in_a, in_b = _rows(a), _rows(b)
    renamed = find_renames((name for name in in_a if name not in in_b), (name for name in in_b if name not in in_a))
    renamed = [each for each in renamed if _wanted(each.a, include) or _wanted(each.b, include)]
    known_a, known_b = {each.a: each.b for each in renamed}, {each.b for each in renamed}
    partners = [(row, in_b.get(known_a.get(name, name)), name) for name, row in in_a.items()]
    return Pairing(
        pairs=tuple(
            (row, other)
            for row, other, name in partners
            if other is not None and (name in known_a or _wanted(name, include))
        ),
        added=tuple(
            _tensor(b[row])
            for name, row in in_b.items()
            if name not in in_a and name not in known_b and _wanted(name, include)
        ),
        removed=tuple(_tensor(a[row]) for row, other, name in partners if other is None and _wanted(name, include)),
        renamed=tuple(renamed),
    )


def shape_changes(a: TensorColumns, b: TensorColumns, pairing: Pairing) -> tuple[ShapeChange, ...]:
    """Pairs of two shapes."""
    return tuple(
        ShapeChange(name=a.names[row], a=a.shapes[a.shape_ids[row]], b=b.shapes[b.shape_ids[other]])
        for row, other in pairing.pairs
        if a.shapes[a.shape_ids[row]] != b.shapes[b.shape_ids[other]]
    )


def dtype_changes(a: TensorColumns, b: TensorColumns, pairing: Pairing) -> tuple[DtypeChange, ...]:
    """Pairs of two element types."""
    return tuple(
        DtypeChange(name=a.names[row], a=a.dtypes[a.dtype_ids[row]], b=b.dtypes[b.dtype_ids[other]])
        for row, other in pairing.pairs
        if a.dtypes[a.dtype_ids[row]] != b.dtypes[b.dtype_ids[other]]
    )


def _rows(columns: TensorColumns) -> dict[str, int]:
    return {name: row for row, name in enumerate(columns.names)}


def _wanted(name: str, include: Sequence[str]) -> bool:
    return not include or any(fnmatchcase(name, pattern) for pattern in include)


def _tensor(info: TensorInfo) -> Tensor:
    return Tensor(name=info.name, dtype=info.dtype, shape=info.shape)
