"""The records that tell what a model is; light to import, for declarations and screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.models.problem import Problem, worst


@dataclass(frozen=True, kw_only=True)
class SpecialToken:
    """A token with a role, and its id when a vocabulary or an added token tells it."""

    content: str
    id: int | None


@dataclass(frozen=True, kw_only=True)
class ChatTemplate:
    """One chat template, where it was found, and its length in characters."""

    name: str
    source: str
    characters: int


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """The facts; None or empty where no file says. `vocab_size` counts ids with added tokens."""

    files: tuple[str, ...] = ()
    tokenizer_class: str | None = None
    model: str | None = None
    vocab_size: int | None = None
    highest_id: int | None = None
    added_tokens: int = 0
    special_tokens: dict[str, SpecialToken]
    chat_templates: tuple[ChatTemplate, ...] = ()
    model_max_length: int | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DtypeShare:
    """What one dtype makes of the weights."""

    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class BigTensor:
    """One of the largest tensors."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    shard: str


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    """The facts of a model folder. None where neither files nor configuration say.

    `parameters` counts stored elements: a tied head that is stored counts, scales count, and of packed formats
    (GPTQ, AWQ, mxfp4, NVFP4) the packed words, not the values in them.
    """

    model: str
    folder: str
    source: str
    revision: str | None
    commit: str | None
    format: str
    files: int
    shards: int
    tensors: int
    parameters: int
    weight_bytes: int
    disk_bytes: int
    """Sizes of all files, links followed."""
    dtypes: Mapping[str, DtypeShare]
    """By bytes, the largest first."""
    architecture: str | None
    model_type: str | None
    dtype: str | None
    """What the configuration claims."""
    quantization: str | None
    context: int | None
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    experts: int | None
    vocab: int | None
    tied: bool | None
    tokenizer: TokenizerFacts
    biggest: tuple[BigTensor, ...]
    problems: tuple[Problem, ...]
    """Errors first."""
    config: Mapping[str, Any]
    """The configuration as it stands in the file."""

    @property
    def broken(self) -> bool:
        """True when something in the folder is wrong enough that the model will not load."""
        return worst(self.problems) == "error"
