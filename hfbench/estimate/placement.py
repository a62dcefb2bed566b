"""Which rank holds a tensor: by pipeline stage, and divided or copied among tensor-parallel and expert ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Split = Literal["tensor", "keys", "experts", "copied", "words"]
"""Divided among tensor-parallel ranks; likewise, but not finer than a KV head; among expert ranks; on every rank;
by rows of the vocabulary, which the runtime may pad."""

Place = Literal["first", "last"] | int
"""The stage of the embedding, that of the head, or a layer number."""

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|block)\.(\d+)\.")
_EXPERT = re.compile(r"\.experts?\.(?!.*router)")
_KEYS = re.compile(r"\.(?:k_proj|v_proj|wk|wv|key|value)\b")
_COPIED = re.compile(
    r"norm|\bln_|router|\.gate\.|q_a_proj|kv_a_proj|kv_proj|indexer|compressor|conv1d|_hc\.|relative_attention_bias"
)
HEADS = ("lm_head.weight", "output_layer.weight", "embed_out.weight", "output.weight")
EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "shared.weight",
    "backbone.embeddings.weight",
    "model.embeddings.weight",
)
_TOWER = re.compile(r"^(?:model\.)?(?:vision|visual|audio|image|multi_modal|thinker\.(?:model\.)?(?:visual|audio))")
_LAST = re.compile(r"^(?:[\w.]*\.)?(?:lm_head|output_layer|output|embed_out|score|(?:final_|ln_f|norm_f)\w*|norm)\.")


def layer_span(name: str) -> slice:
    """Where in a tensor's name the number of its decoder layer stands; nothing where there is none."""
    match = None if _TOWER.match(name) else _LAYER.search(name)
    return slice(*match.span(1)) if match and len(match[1]) < 10 else slice(0, 0)


def layer_of(name: str) -> int | None:
    """The number of the decoder layer that a tensor belongs to."""
    number = name[layer_span(name)]
    return int(number) if number else None


def place_of(name: str) -> Place:
    """The stage of a tensor."""
    layer = layer_of(name)
    if layer is not None:
        return layer
    return "last" if not _TOWER.match(name) and _LAST.match(name) else "first"


def split_of(name: str, dimensions: int) -> Split:
    """How ranks share a tensor; small ones are on all of them."""
    if dimensions == 2 and layer_of(name) is None and is_named(name, (*HEADS, *EMBEDDINGS)):
        return "words"
    if _EXPERT.search(name):
        return "experts"
    if dimensions < 2 or _COPIED.search(name):
        return "copied"
    return "keys" if _KEYS.search(name) else "tensor"


def is_named(name: str, endings: Iterable[str]) -> bool:
    """True when a tensor's name is one of these, in whatever module."""
    return any(name == each or name.endswith(f".{each}") for each in endings)


def stage_layers(layers: int, stages: int) -> tuple[range, ...]:
    """The layers of each pipeline stage: equal shares, what is left over to the stages before the last (vLLM)."""
    share, left = divmod(layers, stages)
    sizes = [share] * stages
    for number in range(left):
        sizes[-(number + 2) % stages] += 1
    ends = [sum(sizes[: number + 1]) for number in range(stages)]
    return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))
