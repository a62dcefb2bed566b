"""What sets two models apart, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from hfbench.models.problem import Problem

Change = Literal["added", "removed", "changed"]
ValueClass = Literal["equal", "close", "differ", "unknown"]
RenamedBy = Literal["rule", "wrapper", "bytes"]
"""A rule that was given, a wrapper or prefix known to be put around names, or bytes that only these two share."""

TENSOR_KINDS = ("added", "removed", "renamed", "shape", "dtype")
VALUE_KINDS: tuple[ValueClass, ...] = ("equal", "close", "differ", "unknown")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """A tensor that one side alone has."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rename:
    """One tensor under two names. `rule` reads as those of `--rename`; it is empty of tensors found by their bytes."""

    a: str
    b: str
    rule: str
    by: RenamedBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Clash:
    """Tensors that would all become `name` by a rename: which of them is meant is not guessed, none is renamed."""

    name: str
    rule: str
    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeChange:
    """A tensor of two shapes, under A's name; `dtype` is A's."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DtypeChange:
    """A tensor of two element types, under A's name; `shape` is A's."""

    name: str
    a: str
    b: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueDiff:
    """How the values of a tensor compare, under A's name; metrics are None where no finite number tells them.

    `equal`: the same bytes, or across dtypes the same values. `close`: within the tolerance of the two dtypes
    everywhere. `relative_l2` is ||a-b|| / ||a||. Metrics count pairs of finite numbers; `nonfinite` counts the pairs
    that differ and in which one is NaN or infinite.
    """

    name: str
    dtype: str
    """A's."""
    shape: tuple[int, ...]
    verdict: ValueClass
    max_abs: float | None = None
    mean_abs: float | None = None
    relative_l2: float | None = None
    cosine: float | None = None
    nonfinite: int = 0
    note: str = ""
    """By which scales the values were multiplied, or why they could not be measured."""


def farthest_first(value: ValueDiff) -> tuple[int, bool, float, float]:
    """What to order values by: those that differ, are not measured, close, equal; among them the farthest first, and
    before these the ones that differ by NaN or infinities, which no figure tells."""
    rank = ("differ", "unknown", "close", "equal").index(value.verdict)
    return (
        rank,
        not value.nonfinite,
        -(value.relative_l2 if value.relative_l2 is not None else math.inf),
        -(value.max_abs or 0.0),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """What is close between two dtypes: |a-b| <= atol + rtol max(|a|, |b|), of scaled values atol times the scale."""

    dtypes: str
    """`BF16 and F32`."""
    name: str
    """`one rounding to BF16`."""
    rtol: float
    atol: float


@dataclass(frozen=True, kw_only=True)
class KeyDiff:
    """One key of a file that differs; `key` is empty when the whole file does. Long values are told in words."""

    file: str
    key: str
    change: Change
    a: Any = None
    b: Any = None
    lines: tuple[str, ...] = ()
    """A unified diff of texts of several lines."""


@dataclass(frozen=True, kw_only=True)
class ModelDiff:
    """Everything that sets B apart from A. `values` is None when only headers were compared."""

    a: str
    b: str
    tensors_a: int
    tensors_b: int
    compared: int
    """Tensors on both sides, renamed ones included."""
    counts: dict[str, int]
    """How many there are of each kind and class, whatever is listed below."""
    added: tuple[Tensor, ...]
    removed: tuple[Tensor, ...]
    unread: tuple[Tensor, ...]
    """Tensors of one side that the other may hold in a file which could not be read."""
    renamed: tuple[Rename, ...]
    clashes: tuple[Clash, ...]
    shape: tuple[ShapeChange, ...]
    dtype: tuple[DtypeChange, ...]
    values: tuple[ValueDiff, ...] | None
    tolerances: tuple[Tolerance, ...]
    """Those by which values were judged."""
    config: tuple[KeyDiff, ...]
    generation: tuple[KeyDiff, ...]
    tokenizer: tuple[KeyDiff, ...]
    template: tuple[KeyDiff, ...]
    notes: tuple[Problem, ...]
    """What explains a difference, or is not compared on purpose."""
    problems: tuple[Problem, ...]
    """What could not be compared."""
    values_compared: bool = False
    """Whether values were read: without them two models are the same by headers and files alone."""

    @property
    def differs(self) -> bool:
        """True when anything compared is not the same."""
        keys = self.config or self.generation or self.tokenizer or self.template
        return bool(keys) or any(self.counts.get(kind, 0) for kind in (*TENSOR_KINDS, "close", "differ"))
