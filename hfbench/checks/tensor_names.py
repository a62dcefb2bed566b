"""Finds the language model among the tensors of a checkpoint by the names that families use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hfbench.checks.subject import Subject
from hfbench.models.columns import TensorInfo

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


def text_layers(names: Iterable[str]) -> Layers | None:
    """The layers of the language model, None when there are none or more than one candidate."""
    groups: dict[str, set[str]] = {}
    for name in names:
        if match := _LAYER.search(name):
            groups.setdefault(name[: match.start(1)], set()).add(match[1])
    groups = {prefix: numbers for prefix, numbers in groups.items() if not _ELSEWHERE.search(prefix)}
    if len(groups) != 1:
        return None
    prefix, numbers = groups.popitem()
    return Layers(prefix.rstrip("."), frozenset(map(int, numbers)))


def outer_names(subject: Subject) -> list[str]:
    """The tensors that belong to no numbered layer."""
    return [name for name in subject.rows if not _LAYER.search(name)]


def embedding(subject: Subject) -> TensorInfo | None:
    """The table of token embeddings: of two dimensions and not packed; None when none is found or several are."""
    found = [
        subject.checkpoint.columns[subject.rows[name]]
        for name in outer_names(subject)
        if name.endswith(EMBEDDINGS) and not _ELSEWHERE.search(name)
    ]
    tables = [each for each in found if len(each.shape) == 2 and each.dtype in FLOATING]
    named = [each for each in tables if each.name.endswith(EMBEDDINGS[:5])]
    tables = named or tables
    return tables[0] if len(tables) == 1 else None


def head(subject: Subject) -> str | None:
    """The name of a tensor of the output head, packed or not; None when there is none."""
    for name in outer_names(subject):
        if not HEADS.isdisjoint(name.split(".")[:-1]) and not _ELSEWHERE.search(name):
            return name
    return None
