"""Pairs the tensors of two checkpoints by name, whatever files they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hfbench.models.columns import TensorColumns, TensorInfo
from hfbench.models.diff.facts import Clash, DtypeChange, Rename, ShapeChange, Tensor
from hfbench.models.diff.rename import match_names
from hfbench.models.diff.rules import Rule
from hfbench.models.problem import Problem


@dataclass(frozen=True, slots=True)
class Pairing:
    """Rows of A and B that are one tensor, and rows whose tensor only one side has."""

    pairs: tuple[tuple[int, int], ...]
    added: tuple[int, ...]
    """Rows of B; those of `removed` are of A."""
    removed: tuple[int, ...]
    renamed: tuple[Rename, ...]
    clashes: tuple[Clash, ...]
    notes: tuple[Problem, ...]


def pair_tensors(
    a: TensorColumns, b: TensorColumns, include: Sequence[str] = (), rules: Sequence[Rule] = ()
) -> Pairing:
    """Tensors that belong together by name; `include` keeps those whose name on either side matches.

    UsageError when a rule changes no name of A.
    """
    in_a, in_b = _rows(a), _rows(b)
    names = match_names(in_a, in_b, rules)
    wanted = _Wanted(include)
    pairs = {name: into for name, into in names.partner.items() if wanted(name) or wanted(into)}
    taken = set(names.partner.values())
    return Pairing(
        pairs=tuple(sorted((in_a[name], in_b[into]) for name, into in pairs.items())),
        added=tuple(row for name, row in in_b.items() if name not in taken and wanted(name)),
        removed=tuple(row for name, row in in_a.items() if name not in names.partner and wanted(name)),
        renamed=tuple(each for each in names.renames if each.a in pairs),
        clashes=tuple(each for each in names.clashes if any(map(wanted, (*each.a, *each.b)))),
        notes=names.notes,
    )


def shape_changes(a: TensorColumns, b: TensorColumns, pairing: Pairing) -> tuple[ShapeChange, ...]:
    """Pairs of two shapes."""
    return tuple(
        ShapeChange(
            name=a.names[row],
            a=a.shapes[a.shape_ids[row]],
            b=b.shapes[b.shape_ids[other]],
            dtype=a.dtypes[a.dtype_ids[row]],
        )
        for row, other in pairing.pairs
        if a.shapes[a.shape_ids[row]] != b.shapes[b.shape_ids[other]]
    )


def dtype_changes(a: TensorColumns, b: TensorColumns, pairing: Pairing) -> tuple[DtypeChange, ...]:
    """Pairs of two element types."""
    return tuple(
        DtypeChange(
            name=a.names[row],
            a=a.dtypes[a.dtype_ids[row]],
            b=b.dtypes[b.dtype_ids[other]],
            shape=a.shapes[a.shape_ids[row]],
        )
        for row, other in pairing.pairs
        if a.dtypes[a.dtype_ids[row]] != b.dtypes[b.dtype_ids[other]]
    )


def _rows(columns: TensorColumns) -> dict[str, int]:
    return {name: row for row, name in enumerate(columns.names)}


class _Wanted:
    """Whether a name matches one of the patterns; without patterns every name does."""

    def __init__(self, include: Sequence[str]) -> None:
        self.include = include

    def __call__(self, name: str) -> bool:
        return not self.include or any(fnmatchcase(name, pattern) for pattern in self.include)


def tensor(info: TensorInfo) -> Tensor:
    """A tensor that one side alone has."""
    return Tensor(name=info.name, dtype=info.dtype, shape=info.shape)
