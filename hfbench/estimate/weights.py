"""Bytes of the weights: exact from headers, else counted from the architecture."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, prod

from hfbench.estimate.parts import Part
from hfbench.estimate.placement import (
    EMBEDDINGS,
    HEADS,
    Place,
    Split,
    is_named,
    layer_of,
    layer_span,
    place_of,
    split_of,
    stage_layers,
)
from hfbench.estimate.quantized import Scheme
from hfbench.models.columns import TensorColumns

CASTABLE = frozenset({"F64", "F32", "F16", "BF16"})
"""Weights of these types are turned into the type that the runtime computes in."""

_SCALE = re.compile(
    r"(?:_scale(?:_inv|_2|s)?|\.scales|\.qzeros|\.g_idx|_zero_point|weight_shape|_scales|_amax|absmax|quant_map"
    r"|quant_state\.\w+|\.SCB|inv_freq|e_score_correction_bias|tid2eid|_global_scale|weight_format)$"
)
"""Names of what belongs to a packed weight or is no parameter."""
_PACKED = re.compile(r"(?:\.qweight|_packed|_blocks)$")
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_ENDS = (*HEADS, *EMBEDDINGS)
REPEATED = -1
"""Stands for the layer of a head that is stored though tied."""


@dataclass(slots=True)
class Amount:
    """Elements that take the size of the computing type, and bytes that stay as they are."""

    elements: int = 0
    fixed: int = 0

    def bytes(self, size: float) -> float:
        """Bytes at so many bytes an element."""
        return self.elements * size + self.fixed


@dataclass(frozen=True, slots=True)
class Layout:
    """How many ranks share the model."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    kv_heads: int = 0
    """0 when it is not known: keys and values are divided like the rest."""
    pad: int = 1
    """Rows of the vocabulary are made a multiple of this."""

    def share(self, split: Split) -> int:
        """Ranks that a tensor is divided among."""
        if split == "experts":
            return self.ep if self.ep > 1 else self.tp
        if split == "keys":
            return min(self.tp, self.kv_heads) if self.kv_heads else self.tp
        return 1 if split == "copied" else self.tp


@dataclass(frozen=True, eq=False)
class Weights:
    """All weights by place and split. `stored` is what the files hold, or would."""

    amounts: dict[tuple[Place, Split], Amount]
    parameters: int | None
    tensors: int | None
    stored: int
    layers: int
    unused: int = 0
    """Bytes stored that a runtime does not load: a copy of a tied head, layers for speculation."""
    tied: bool = False
    words: int = 0
    """Rows of the vocabulary."""

    def on_stages(self, layout: Layout, size: float) -> tuple[int, ...]:
        """Bytes on one rank of each pipeline stage, at `size` bytes for an element of the computing type."""
        totals = [0.0] * layout.pp
        ends = [held.stop for held in stage_layers(self.layers, layout.pp)]  # a configuration may claim any number
        for (place, split), amount in self.amounts.items():
            taken = amount.bytes(size) / layout.share(split)
            if split == "words" and self.words:
                taken *= padded(self.words, layout.pad) / self.words
            totals[_stage(place, ends)] += taken
            if place == "first" and self.tied and layout.pp > 1 and split == "words":
                totals[-1] += taken  # a tied head needs the embedding on the last stage as well
        return tuple(ceil(total) for total in totals)


def _stage(place: Place, ends: Sequence[int]) -> int:
    """The pipeline stage of a place, where stages end before these layers; layers beyond are on the last."""
    if place == "first":
        return 0
    return len(ends) - 1 if place == "last" else min(bisect_right(ends, place), len(ends) - 1)


def padded(rows: int, multiple: int) -> int:
    """Rows of a vocabulary as a runtime allocates them (vLLM: a multiple of 64)."""
    return -(-rows // multiple) * multiple


def from_columns(columns: TensorColumns, *, layers: int | None, tied: bool | None, bits: int | None) -> Weights:
    """Exact bytes of the tensors of a checkpoint; `bits` tells how many values an integer of GPTQ or AWQ packs.

    Elements of packed weights are counted as the values in them, their scales as no parameters.
    """
    amounts: dict[tuple[Place, Split], Amount] = {}
    parameters = unused = words = 0
    fp4, repeated = _packed_floats(columns), _repeated_head(columns, tied)
    for kind, counts in _alike(columns, repeated).items():
        name, dtype, shape, size = kind
        elements, split = prod(shape), split_of(name, len(shape))
        values = _values(name, dtype, elements, bits, name in fp4)
        words = max(words, shape[0] if split == "words" else 0)
        castable = dtype in CASTABLE and not _SCALE.search(name)
        for number, count in counts.items():
            if number == REPEATED or (layers and number is not None and number >= layers):
                unused += count * size
                continue
            parameters += count * values
            amount = amounts.setdefault((place_of(name) if number is None else number, split), Amount())
            amount.elements += count * elements if castable else 0
            amount.fixed += 0 if castable else count * size
    return Weights(
        amounts=amounts,
        parameters=parameters,
        tensors=len(columns),
        stored=sum(columns.sizes),
        layers=layers or _highest(amounts),
        unused=unused,
        tied=bool(tied) and not _has_head(columns, repeated),
        words=words,
    )


def from_parts(parts: Iterable[Part], *, layers: int, size: float, scheme: Scheme | None) -> Weights:
    """Bytes of an architecture at `size` bytes an element, packed by `scheme` where there is one."""
    amounts: dict[tuple[Place, Split], Amount] = {}
    listed, total = list(parts), 0.0
    for part in listed:
        if part.buffer:
            continue
        packed, left = scheme.stored(part) if scheme else (0, part.elements)
        total += packed + left * size
        numbers: tuple[int | None, ...] = part.layers if part.layers is not None else (None,)
        split = split_of(part.name, len(part.shape))
        inner = layer_of(part.name.replace("{}", "0")) is not None
        for number in numbers:
            place: Place = number if number is not None and inner else place_of(part.name)
            amount = amounts.setdefault((place, split), Amount())
            amount.elements += left // len(numbers)
            amount.fixed += packed // len(numbers)
    return Weights(
        amounts=amounts,
        parameters=sum(part.elements for part in listed if not part.buffer),
        tensors=sum(part.tensors for part in listed),
        stored=ceil(total),
        layers=layers,
        tied=not any(is_named(part.name, HEADS) for part in listed),
        words=max((part.shape[0] for part in listed if split_of(part.name, len(part.shape)) == "words"), default=0),
    )


def from_bytes(total: int) -> Weights:
    """Files that were not opened: nothing is known but their size."""
    return Weights(
        amounts={("first", "tensor"): Amount(fixed=total)}, parameters=None, tensors=None, stored=total, layers=0
    )


Kind = tuple[str, str, tuple[int, ...], int]
"""One tensor's name, and the dtype, shape and bytes that it has in common with others of its pattern."""


def _alike(columns: TensorColumns, repeated: int | None) -> dict[Kind, dict[int | None, int]]:
    """Tensors whose names differ in digits alone and that are else the same, counted by layer."""
    found: dict[tuple[bytes, int, int, int], tuple[str, slice, dict[str, int]]] = {}
    rows = zip(columns.names, columns.dtype_ids, columns.shape_ids, columns.sizes, strict=True)
    for name, dtype, shape, size in rows:
        key = (_pattern(name), dtype, shape, size)
        known = found.get(key)
        if known is None:
            known = found[key] = name, layer_span(name), {}
        number = name[known[1]]
        known[2][number] = known[2].get(number, 0) + 1
    alike = {}
    for (pattern, dtype, shape, size), (name, _, texts) in found.items():
        counts = {int(text) if text else None: count for text, count in texts.items()}
        if repeated is not None and pattern == _pattern(columns.names[repeated]):
            counts = {REPEATED: 1, **{number: count - 1 for number, count in counts.items() if count > 1}}
        alike[name, columns.dtypes[dtype], columns.shapes[shape], size] = counts
    return alike


def _pattern(name: str) -> bytes:
    """The name with every digit alike; bytes, because their `translate` is ten times as fast."""
    return name.encode("utf-8", "surrogatepass").translate(_DIGITS)


def _values(name: str, dtype: str, elements: int, bits: int | None, fp4: bool) -> int:
    """Parameters in one stored tensor."""
    if _SCALE.search(name):
        return 0
    if _PACKED.search(name) or fp4:
        if dtype in ("I32", "U32") and bits:
            return elements * 32 // bits
        return elements * 2 if dtype in ("U8", "I8") else elements
    return elements


def _packed_floats(columns: TensorColumns) -> frozenset[str]:
    """Weights of bytes that hold two values each: NVFP4 and bitsandbytes store a scale beside them."""
    if not {"U8", "I8"} & set(columns.dtypes):
        return frozenset()
    names = set(columns.names)
    return frozenset(
        name
        for row, name in enumerate(columns.names)
        if columns.dtypes[columns.dtype_ids[row]] in ("U8", "I8")
        and (f"{name}_scale_2" in names or f"{name}.absmax" in names or f"{name}_scale" in names)
        and f"{name}.SCB" not in names
        and not (columns.dtypes[columns.dtype_ids[row]] == "I8" and f"{name}_scale_2" not in names)
    )


def _repeated_head(columns: TensorColumns, tied: bool | None) -> int | None:
    """The row of a head that is stored though tied: as large as the embedding, loaded once."""
    if not tied:
        return None
    rows = _named(columns)
    heads = [row for name, row in rows.items() if is_named(name, HEADS)]
    embeddings = [row for name, row in rows.items() if is_named(name, EMBEDDINGS)]
    for head in heads:
        if any(columns.shape_ids[head] == columns.shape_ids[other] for other in embeddings):
            return head
    return None


def _has_head(columns: TensorColumns, repeated: int | None) -> bool:
    return any(row != repeated and is_named(name, HEADS) for name, row in _named(columns).items())


def _named(columns: TensorColumns) -> dict[str, int]:
    """Rows of heads and embeddings by name."""
    names = enumerate(columns.names)
    return {name: row for row, name in names if name.endswith(_ENDS) and is_named(name, _ENDS)}


def _highest(amounts: dict[tuple[Place, Split], Amount]) -> int:
    return max((place + 1 for place, _ in amounts if isinstance(place, int)), default=0)
