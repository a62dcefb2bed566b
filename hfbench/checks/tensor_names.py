"""Finds the language model among the tensors of a checkpoint by the names that families use."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hfbench.models.columns import TensorColumns, TensorInfo

FLOATING = frozenset({"F64", "F32", "F16", "BF16"})

EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "embed_in.weight",
    "embedding.weight",
    "embeddings.weight",
)
HEADS = frozenset({"lm_head", "output", "embed_out", "output_layer", "head", "logits", "lm_heads"})

EXTRA_ROWS = {"mllama": 8}
"""Rows that a family's embedding has beyond its vocabulary: tokens that stand for images."""

PLAIN = frozenset(
    [
        "llama",
        "mistral",
        "mixtral",
        "ministral",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "gemma",
        "gemma2",
        "gemma3_text",
        "smollm3",
        "granite",
        "granitemoe",
        "olmo",
        "olmo2",
        "olmo3",
        "cohere",
        "cohere2",
        "starcoder2",
        "stablelm",
        "phi",
        "persimmon",
        "exaone4",
        "helium",
        "glm",
        "glm4",
        "nemotron",
        "arcee",
    ]
)
"""Families whose q_proj has heads times head_dim rows and whose embedding is hidden_size wide."""

_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d{1,5})\.")
_ELSEWHERE = re.compile(
    r"(^|[._])(vision|visual|image|audio|speech|encoder|talker|code2wav|mtp|draft|eagle|speculative|projector|resampler"
    r"|code_predictor|token2wav|mm|vit|vpm|apm|tts|per_layer)"
)


@dataclass(frozen=True, slots=True)
class Layers:
    """The numbered layers below one prefix: which numbers occur."""

    prefix: str
    numbers: frozenset[int]

    @property
    def count(self) -> int:
        """One more than the highest number."""
        return max(self.numbers) + 1


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of the language model are; what is not found, or not for certain, is None."""

    layers: Layers | None
    numbered: bool
    """Whether any tensor belongs to a numbered layer, of whatever part."""
    embedding: TensorInfo | None
    """The table of token embeddings: of two dimensions and not packed."""
    head: TensorInfo | None
    """A tensor of the output head, packed or not."""


def places(columns: TensorColumns) -> Places:
    """One look at all names."""
    groups: dict[str, set[str]] = {}
    outer = array("L")
    for row, name in enumerate(columns.names):
        if match := _LAYER.search(name):
            groups.setdefault(name[: match.start(1)], set()).add(match[1])
        else:
            outer.append(row)
    return Places(_text_layers(groups), bool(groups), _embedding(columns, outer), _head(columns, outer))


def _text_layers(groups: Mapping[str, set[str]]) -> Layers | None:
    """The layers of the language model, None when there are none or more than one candidate."""
    kept = {prefix: numbers for prefix, numbers in groups.items() if not _ELSEWHERE.search(prefix)}
    if len(kept) != 1:
        return None
    prefix, numbers = kept.popitem()
    return Layers(prefix.rstrip("."), frozenset(map(int, numbers)))


def _embedding(columns: TensorColumns, outer: Iterable[int]) -> TensorInfo | None:
    names = columns.names
    found = [columns[row] for row in outer if names[row].endswith(EMBEDDINGS) and not _ELSEWHERE.search(names[row])]
    tables = [each for each in found if len(each.shape) == 2 and each.dtype in FLOATING]
    named = [each for each in tables if each.name.endswith(EMBEDDINGS[:5])]
    tables = named or tables
    return tables[0] if len(tables) == 1 else None


def _head(columns: TensorColumns, outer: Iterable[int]) -> TensorInfo | None:
    for row in outer:
        name = columns.names[row]
        if not HEADS.isdisjoint(name.split(".")[:-1]) and not _ELSEWHERE.search(name):
            return columns[row]
    return None
