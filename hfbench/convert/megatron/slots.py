"""Every tensor that a Megatron model of given sizes has, whole, before it is divided among ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.convert.families.table import LAYER, Family, Row
from hfbench.convert.megatron.sizes import Sizes

FURTHER = "mtp.layers.{n}."
INNER = FURTHER + "transformer_layer."
"""Where megatron-core 0.16 keeps the transformer layer of a layer that predicts further tokens."""

EMBEDDING = "embedding.word_embeddings.weight"
OUTPUT = "output_layer.weight"


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor in the families' spelling: `{n}` and `{e}` stand for `layer` and `expert`, counted over the model."""

    target: str
    rows: tuple[Row, ...]
    """The ways to make it, the first whose sources are there counts."""
    source_layer: int | None = None
    """The layer's number on the side of Hugging Face."""
    layer: int | None = None
    expert: int | None = None
    further: bool = False

    @property
    def name(self) -> str:
        """The tensor as it would be called if one rank held the model."""
        return self.target.replace("{n}", str(self.layer)).replace("{e}", str(self.expert))

    def sources(self, row: Row) -> tuple[str, ...]:
        """Names on the side of Hugging Face for one of the ways."""
        if self.layer is None:
            return row.sources
        number, expert = str(self.source_layer), str(self.expert)
        return tuple(each.replace("{n}", number).replace("{e}", expert) for each in row.sources)


def slots_of(family: Family, sizes: Sizes, args: Mapping[str, Any]) -> list[Slot]:
    """All slots in the order of the model: embedding, layers, final norm, head, layers that predict further."""
    return list(_slots(family, sizes, args))


def _slots(family: Family, sizes: Sizes, args: Mapping[str, Any]) -> Iterator[Slot]:
    alone = _chosen(family, args, "", lambda target: "{n}" not in target and "{j}" not in target)
    for target, rows in alone:
        if target.startswith("embedding."):
            yield Slot(target, rows)
    kinds = {kind: _chosen(family, args, kind, lambda target: target.startswith(LAYER)) for kind in ("dense", "moe")}
    for layer in range(sizes.layers):
        for target, rows in kinds["moe" if layer in sizes.moe_layers else "dense"]:
            yield from _of_layer(target, rows, sizes, layer, layer)
    for target, rows in alone:
        if not target.startswith("embedding."):
            yield Slot(target, rows)
    own = _chosen(family, args, "", lambda target: "{j}" in target)
    for place in range(sizes.mtp):
        for target, rows in own:
            yield Slot(target.replace("{j}", "{n}"), rows, sizes.layers + place, place, further=True)
        for target, rows in kinds["moe" if sizes.experts else "dense"]:
            inner = INNER + target.removeprefix(LAYER)
            yield from _of_layer(inner, rows, sizes, sizes.layers + place, place, further=True)


def _of_layer(
    target: str, rows: tuple[Row, ...], sizes: Sizes, source_layer: int, layer: int, *, further: bool = False
) -> Iterator[Slot]:
    for expert in range(sizes.experts) if "{e}" in target else (None,):
        yield Slot(target, rows, source_layer, layer, expert, further)


def _chosen(family: Family, args: Mapping[str, Any], kind: str, wanted: Any) -> Sequence[tuple[str, tuple[Row, ...]]]:
    """The targets that such a model has, with the rows that may make them."""
    found = []
    for target, rows in family.by_target.items():
        if wanted(target) and (fitting := tuple(row for row in rows if _applies(row, args, kind))):
            found.append((target, fitting))
    return found


def _applies(row: Row, args: Mapping[str, Any], kind: str) -> bool:
    for condition in row.when.split():
        if condition in ("dense", "moe"):
            holds = condition == kind
        else:
            name = condition.removeprefix("not:")
            holds = bool(args.get(name)) != (name != condition)
        if not holds:
            return False
    return True
