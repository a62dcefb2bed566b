"""The tensors of a checkpoint against the model that its configuration builds: names, layers and shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hfbench.models.columns import TensorColumns, TensorInfo
from hfbench.models.layer_laws import Law, Laws, Sizes, laws_of

FLOATING = frozenset({"F64", "F32", "F16", "BF16"})

ELSEWHERE = re.compile(r"(^|[._])(vision|visual|image|audio|speech|encoder|talker|code|mtp|draft|eagle|projector|vit)")
"""Parts of a model beside its language model, which may have layers of the same names."""

PACKED = (".qweight", ".weight_packed", ".weight_scale", ".weight_scale_inv", ".SCB", ".absmax")
"""Ends of names that only quantized tensors have."""

PADDING = ("pad_vocab_size_multiple", "pad_vocab_size_multiple_of", "make_vocab_size_divisible_by")
"""Keys by which a model rounds its embedding up."""

MOST_LAYERS = 100_000
"""Layers of a configuration that are asked for one by one."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Tensors of one name in all layers that are not as long as the configuration makes them."""

    keys: str
    wanted: tuple[int, ...]
    """The shape; a dimension that follows from nothing known is as it is stored."""
    tensor: TensorInfo
    further: int
    """Further layers of which the same holds."""
    layered: bool
    """Whether it is a tensor of a layer."""


class Fit:
    """One checkpoint held against the laws of its family; `wrapped` when the language model is a part of another."""

    def __init__(self, laws: Laws, values: Mapping[str, Any], columns: TensorColumns, *, wrapped: bool) -> None:
        self.laws, self.values, self.columns, self.wrapped = laws, values, columns, wrapped

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each tensor by its name, under the name that layer norms have had since 2020, too."""
        rows = {name: row for row, name in enumerate(self.columns.names)}
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
            rows |= {name.removesuffix(old) + new: row for name, row in rows.items() if name.endswith(old)}
        return rows

    @cached_property
    def root(self) -> str | None:
        """What stands before the names of the model without its head; None when no name fits, or several do alike."""
        inner, names = self.laws.layers, self.rows
        tried = {f"{self.laws.base}.", ""}
        if self.wrapped:
            tried = {name[: name.index(inner)] for name in names if inner in name}
            tried = {root for root in tried if not ELSEWHERE.search(root)}
        ends = {name for law in self.laws.each for name in law}
        found = {
            root: {_below(name, root + inner) for name in names if name.startswith(root + inner)} for root in tried
        }
        held = {root: len(ends & below) for root, below in found.items() if ends & below}
        most = [root for root, count in held.items() if count == max(held.values())]
        return most[0] if len(most) == 1 else None

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The layers of which anything is stored."""
        start = f"{self.root}{self.laws.layers}"
        cut = len(start)
        found = {name[cut:].partition(".")[0] for name in self.rows if name.startswith(start)}
        return frozenset(int(number) for number in found if number.isdecimal() and len(number) < 6)

    def stranger(self) -> str:
        """A stored name, when none is of a layer as the family names them; empty when some are."""
        if self.root is not None or self.wrapped or self.laws.renamed or not self.laws.each:
            return ""
        return next((name for name in self.rows if any(part.isdecimal() for part in name.split("."))), "")

    def missing(self, layers: int) -> list[str]:
        """The names of the tensors that the first so many layers lack, of those of which anything is stored."""
        if self.root is None or any(name.endswith(PACKED) for name in self.rows):
            return []
        outer = [name for name in self.laws.outer if not self.wrapped or name.endswith("embed_tokens.weight")]
        lacking = [self.root + name for name in outer if self.root + name not in self.rows]
        for number in sorted(self.numbers):
            if number < min(layers, MOST_LAYERS):
                start = f"{self.root}{self.laws.layers}{number}."
                lacking += [start + names[0] for names in self.laws.each if not self._any(start, names)]
        return lacking

    def misfits(self) -> Iterator[Misfit]:
        """The tensors whose shapes the configuration does not make, each name once."""
        if self.root is None:
            return
        sizes = self.laws.sizes(self.values)
        for name, law in self.laws.outer.items():
            if law and (row := self.rows.get(self.root + name)) is not None:
                yield from self._misfit([row], law, sizes, layered=False)
        for name, law in self.laws.shapes.items():
            found = (self.rows.get(f"{self.root}{self.laws.layers}{number}.{name}") for number in sorted(self.numbers))
            yield from self._misfit([row for row in found if row is not None], law, sizes, layered=True)

    def other_rows(self) -> tuple[int, int] | None:
        """vocab_size and the rows of the embedding where they differ, in families that round neither up."""
        sizes, padded = self.laws.sizes(self.values), any(self.values.get(name) for name in PADDING)
        for name, law in self.laws.outer.items():
            row = self.rows.get(f"{self.root}{name}")
            said = sizes.values.get("V") if law and law[0] == "V" and len(law) == 2 and not padded else None
            if row is not None and said is not None:
                shape = self.columns.shapes[self.columns.shape_ids[row]]
                if len(shape) == 2 and shape[0] != said:
                    return said, shape[0]
        return None

    def _any(self, start: str, names: tuple[str, ...]) -> bool:
        return any(start + name in self.rows for name in names)

    def _misfit(self, rows: list[int], law: Law, sizes: Sizes, *, layered: bool) -> Iterator[Misfit]:
        wanted = tuple(sizes.dimension(term) for term in law)
        if all(length is None for length in wanted):
            return
        columns = self.columns
        wrong = [
            row
            for row in rows
            if columns.dtypes[columns.dtype_ids[row]] in FLOATING
            and not _fits(wanted, columns.shapes[columns.shape_ids[row]])
        ]
        if wrong:
            tensor = columns[wrong[0]]
            stored = [*tensor.shape, *[1] * len(wanted)]
            whole = tuple(length or there for length, there in zip(wanted, stored, strict=False))
            known = tuple(term if length else None for term, length in zip(law, wanted, strict=True))
            yield Misfit(sizes.said_by(known), whole, tensor, len(wrong) - 1, layered)


def fit_of(root: Mapping[str, Any], text: Mapping[str, Any], columns: TensorColumns) -> Fit | None:
    """A checkpoint and the laws of its family; `text` is the part of config.json that describes the language model.

    None for families of which no laws are known, and for a class of another family.
    """
    laws, wrapped = laws_of(_type(text)), text is not root
    if laws is None:  # a model with further parts, whose configuration may be in one piece
        laws, wrapped = laws_of(f"{_type(root)}_text"), True
    if laws is None:
        return None
    named = root.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    if isinstance(first, str) and not wrapped and not laws.builds(first):
        return None
    return Fit(laws, text, columns, wrapped=wrapped)


def _type(values: Mapping[str, Any]) -> str | None:
    value = values.get("model_type")
    return value if isinstance(value, str) else None


def _below(name: str, start: str) -> str:
    return name[len(start) :].partition(".")[2]


def _fits(wanted: tuple[int | None, ...], stored: tuple[int, ...]) -> bool:
    same = len(wanted) == len(stored)
    return same and all(length in (None, there) for length, there in zip(wanted, stored, strict=True))
