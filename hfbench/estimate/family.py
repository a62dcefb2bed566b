"""A family of architectures: the tensors and the caches that follow from a configuration."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from hfbench.estimate.blocks.attention import Switch, on
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.parts import Part, Parts, linear, norm, on_layers, table, under
from hfbench.estimate.settings import NotKnown, Settings

FULL = "full_attention"
DENSE = "dense"

PURPOSES = {
    "LMHeadModel": "words",
    "ForSequenceClassification": "sequences",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "spans",
    "Model": "none",
}
"""Endings of architectures, the first that fits, and what their heads give."""


class Block(Protocol):
    """A module of a layer."""

    def parts(self, c: Settings) -> Parts:
        """Its tensors, named from the layer on."""


class Mixer(Block, Protocol):
    """A module that mixes tokens, and so has something to remember."""

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """What one layer keeps."""


class Family(Protocol):
    """What the rest of the room asks of a family."""

    def parts(self, config: Settings) -> Parts:
        """All tensors of the model."""

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """One cache a layer, in order of the layers."""

    def text(self, config: Settings) -> Settings:
        """The settings of the language model."""


def all_full(c: Settings) -> Sequence[str]:
    """Every layer attends to everything, unless the configuration lists its layers."""
    listed = c.sequence("layer_types")
    return [str(each) for each in listed] if listed else [FULL] * c.layers


def all_dense(c: Settings) -> Sequence[str]:
    """No layer has experts."""
    return [DENSE] * c.layers


def nothing(c: Settings) -> Parts:
    """Nothing more than embedding, norm and head."""
    return iter(())


def labels(c: Settings) -> int:
    """Classes of a classifier."""
    told = c.raw.get("id2label")
    return len(told) if isinstance(told, dict) and told else c.size("num_labels", default=2)


def purpose_of(c: Settings) -> str:
    """What the architecture's name ends with, in a word: `words` unless it is said."""
    named = c.sequence("architectures")
    name = str(named[0]) if named else ""
    return next((purpose for ending, purpose in PURPOSES.items() if name.endswith(ending)), "words")


def other_head(purpose: str, c: Settings, width: int) -> Parts:
    """The head of a classifier, none for a bare model."""
    if purpose == "sequences":
        yield from linear("score", labels(c), width)
    elif purpose == "tokens":
        yield from linear("score", labels(c), width, c.flag("token_classification_bias", True))
    elif purpose == "spans":
        yield from linear("qa_outputs", 2, width, True)


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """A stack of equal or alternating layers between an embedding and a head."""

    mixers: Mapping[str, Mixer]
    """By kind of layer; `full_attention` serves every kind that is not named."""
    feeds: Mapping[str, Block | None]
    """By kind of feed-forward; `dense` serves every kind that is not named."""
    mixer_kinds: Callable[[Settings], Sequence[str]] = all_full
    feed_kinds: Callable[[Settings], Sequence[str]] = all_dense
    norms: Sequence[str] = ("input_layernorm", "post_attention_layernorm")
    norm_bias: bool = False
    module: str = "model"
    stack: str = "layers"
    embedding: str = "embed_tokens"
    final_norm: str = "norm"
    head: str = "lm_head"
    head_bias: Switch = False
    ties: bool = True
    """Whether the class ties the head at all."""
    head_width: Callable[[Settings], int] = lambda c: c.hidden
    more: Callable[[Settings], Parts] = nothing
    """Further tensors, named from `module` on."""
    layer_more: Callable[[Settings], Parts] = nothing
    """Further tensors of every layer."""
    kind_more: Callable[[Settings, str], Parts] = field(default=lambda c, kind: iter(()))
    """Further tensors of the layers of one mixer kind."""

    def text(self, config: Settings) -> Settings:
        """A decoder is its own language model."""
        return config

    def parts(self, config: Settings) -> Parts:
        """Embedding, layers, norm, and a head unless it is tied."""
        yield from under(self.module, self.body(config)) if self.module else self.body(config)
        yield from self.end(config)

    def end(self, c: Settings) -> Parts:
        """The head that the architecture's name asks for: words, classes, or none."""
        purpose, bias, width = purpose_of(c), on(self.head_bias, c), self.head_width(c)
        if purpose != "words":
            yield from other_head(purpose, c, width)
        elif self.head and not (c.tied and self.ties):
            yield from linear(self.head, c.vocab, width, bias)
        elif self.head and bias:
            yield Part(f"{self.head}.bias", (c.vocab,))

    def body(self, c: Settings) -> Parts:
        """All but the head, named from the module on."""
        yield from table(self.embedding, c.vocab, c.hidden)
        yield from self.layers(c)
        if self.final_norm:
            yield from norm(self.final_norm, c.hidden, self.norm_bias)
        yield from self.more(c)

    def layers(self, c: Settings) -> Parts:
        """The tensors of all layers."""
        every = range(c.layers)
        for name in self.norms:
            yield from on_layers(self.stack, every, norm(name, c.hidden, self.norm_bias))
        yield from on_layers(self.stack, every, self.layer_more(c))
        for kind, held in _by_kind(self.mixer_kinds(c), c):
            yield from on_layers(self.stack, held, self.mixer(kind).parts(c))
            yield from on_layers(self.stack, held, self.kind_more(c, kind))
        for kind, held in _by_kind(self.feed_kinds(c), c):
            feed = self.feeds.get(kind, self.feeds.get(DENSE))
            if feed is not None:
                yield from on_layers(self.stack, held, feed.parts(c))

    def mixer(self, kind: str) -> Mixer:
        """What a layer of this kind mixes with."""
        found = self.mixers.get(kind) or self.mixers.get(FULL)
        if found is None:
            raise NotKnown(f"layers of the kind {kind[:60]!r} are not known")
        return found

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """One a layer."""
        kinds = _checked(self.mixer_kinds(config), config)
        made = {kind: self.mixer(kind).cache(config, kind) for kind in dict.fromkeys(kinds)}
        return [made[kind] for kind in kinds]


def _checked(kinds: Sequence[str], c: Settings) -> Sequence[str]:
    if len(kinds) < c.layers:
        raise NotKnown(f"{len(kinds)} layers are described, the configuration has {c.layers}")
    return kinds[: c.layers]


def _by_kind(kinds: Sequence[str], c: Settings) -> Iterator[tuple[str, list[int]]]:
    by_kind: dict[str, list[int]] = {}
    for number, kind in enumerate(_checked(kinds, c)):
        by_kind.setdefault(kind, []).append(number)
    return iter(by_kind.items())


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """Every family by model_type, gathered from the modules of `families`."""
    from hfbench.estimate import families as room

    found: dict[str, Family] = {}
    for module in pkgutil.iter_modules(room.__path__):
        table = importlib.import_module(f"{room.__name__}.{module.name}").FAMILIES
        if twice := found.keys() & table.keys():
            raise TypeError(f"{module.name}: {sorted(twice)} is declared twice")
        found |= table
    return found
