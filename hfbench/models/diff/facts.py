"""What sets two models apart, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hfbench.models.problem import Problem

Change = Literal["added", "removed", "changed"]
ValueClass = Literal["equal", "close", "differ", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor that one side alone has."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Rename:
    """One tensor under two names: `dropped` is the part of A's name in whose place B's has `gained`."""

    a: str
    b: str
    dropped: str
    gained: str


@dataclass(frozen=True, kw_only=True)
class ShapeChange:
    """A tensor of two shapes, under A's name."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class DtypeChange:
    """A tensor of two element types, under A's name."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class ValueDiff:
    """How the values of a tensor compare, under A's name; metrics are None where no finite number tells them.

    `equal`: the same bytes, or across dtypes the same values. `close`: |a-b| <= 1e-8 + 1e-5 |a| everywhere.
    `relative_l2` is ||a-b|| / ||a||. Metrics count pairs of finite numbers; `nonfinite` counts the pairs
    that differ and in which one is NaN or infinite.
    """

    name: str
    verdict: ValueClass
    max_abs: float | None = None
    mean_abs: float | None = None
    relative_l2: float | None = None
    cosine: float | None = None
    nonfinite: int = 0
    note: str = ""
    """Why the values could not be measured."""


@dataclass(frozen=True, kw_only=True)
class KeyDiff:
    """One key of a file that differs; `key` is empty when the whole file does. Long values are told in words."""

    file: str
    key: str
    change: Change
    a: Any = None
    b: Any = None


@dataclass(frozen=True, kw_only=True)
class ModelDiff:
    """Everything that sets B apart from A. `values` is None when only headers were compared."""

    a: str
    b: str
    tensors_a: int
    tensors_b: int
    compared: int
    """Tensors on both sides, renamed ones included."""
    added: tuple[Tensor, ...]
    removed: tuple[Tensor, ...]
    renamed: tuple[Rename, ...]
    shape: tuple[ShapeChange, ...]
    dtype: tuple[DtypeChange, ...]
    values: tuple[ValueDiff, ...] | None
    config: tuple[KeyDiff, ...]
    generation: tuple[KeyDiff, ...]
    tokenizer: tuple[KeyDiff, ...]
    template: tuple[KeyDiff, ...]
    problems: tuple[Problem, ...]
    """What could not be compared."""

    @property
    def differs(self) -> bool:
        """True when anything compared is not the same."""
        names = self.added or self.removed or self.renamed or self.shape or self.dtype
        keys = self.config or self.generation or self.tokenizer or self.template
        return bool(names or keys) or any(each.verdict in ("close", "differ") for each in self.values or ())
