"""Which rank holds a tensor: by pipeline stage, and divided or copied among tensor-parallel and expert ranks."""

from __future__ import annotations

import re
from typing import Literal

Split = Literal["tensor", "keys", "experts", "copied"]
"""Divided among tensor-parallel ranks; likewise, but not finer than a KV head; among expert ranks; on every rank."""

Place = Literal["first", "last"] | int
"""The stage of the embedding, that of the head, or a layer number."""

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|block)\.(\d+)\.")
_EXPERT = re.compile(r"\.experts?\.(?!.*router)")
_KEYS = re.compile(r"\.(?:k_proj|v_proj|wk|wv|key|value)\b")
_COPIED = re.compile(
    r"norm|\bln_|router|\.gate\.|q_a_proj|kv_a_proj|kv_proj|indexer|compressor|conv1d|_hc\.|relative_attention_bias"
)
_TOWER = re.compile(r"^(?:model\.)?(?:vision|visual|audio|image|multi_modal|thinker\.(?:model\.)?(?:visual|audio))")
_LAST = re.compile(r"^(?:[\w.]*\.)?(?:lm_head|output_layer|embed_out|score|(?:final_|ln_f|norm_f)\w*|norm)\.")


def layer_of(name: str) -> int | None:
    """The number of the decoder layer that a tensor belongs to."""
    match = None if _TOWER.match(name) else _LAYER.search(name)
    return int(match[1]) if match and len(match[1]) < 10 else None


def place_of(name: str) -> Place:
    """The stage of a tensor."""
    layer = layer_of(name)
    if layer is not None:
        return layer
    return "last" if not _TOWER.match(name) and _LAST.match(name) else "first"


def split_of(name: str, dimensions: int) -> Split:
    """How ranks share a tensor; small ones are on all of them."""
    if _EXPERT.search(name):
        return "experts"
    if dimensions < 2 or _COPIED.search(name):
        return "copied"
    return "keys" if _KEYS.search(name) else "tensor"


def stage_layers(layers: int, stages: int) -> tuple[range, ...]:
    """The layers of each pipeline stage: equal shares, what is left over to the stages before the last (vLLM)."""
    share, left = divmod(layers, stages)
    sizes = [share] * stages
    for number in range(left):
        sizes[-(number + 2) % stages] += 1
    ends = [sum(sizes[: number + 1]) for number in range(stages)]
    return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))
