"""Language models with towers beside them: how a tower, a projector and a decoder make one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hfbench.estimate.caches import LayerCache
from hfbench.estimate.family import Decoder, Family, families, other_head, purpose_of
from hfbench.estimate.parts import Parts, linear, under
from hfbench.estimate.settings import NotKnown, Settings

TEXT = ("text_config", "llm_config", "language_config")


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A decoder inside a model of several kinds of input.

    `language` names the decoder's family, or is empty where the nested configuration says it. `towers` lists all
    that is not the decoder.
    """

    towers: Callable[[Settings], Parts]
    language: str = ""
    module: str = "model.language_model"
    head: str = "lm_head"
    tied_by: Literal["root", "either", "text", ""] = "root"
    """Whose `tie_word_embeddings` counts; nobody's where the class never ties its head."""
    flat: bool = False
    """Older files keep the text's settings at the root."""

    def text(self, config: Settings) -> Settings:
        """The language model's settings."""
        if self.flat and not isinstance(config.raw.get(TEXT[0]), dict):
            return config.part(TEXT[0], {key: value for key, value in config.raw.items() if key != "model_type"})
        return config.section(*TEXT)

    def family(self, text: Settings) -> Decoder:
        """The decoder's family."""
        kind = self.language or text.kind
        found = families().get(kind)
        if not isinstance(found, Decoder):
            raise NotKnown(f"not known for model_type {kind[:60]!r} of the language model")
        return found

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """Those of the language model."""
        text = self.text(config)
        return self.family(text).caches(text)

    def parts(self, config: Settings) -> Parts:
        """Towers, decoder, head; the decoder alone for an architecture of words only."""
        text = self.text(config)
        family = self.family(text)
        if words_only(config):
            yield from family.parts(text)
            return
        yield from self.towers(config)
        yield from under(self.module, family.body(text))
        purpose = purpose_of(config)
        if purpose != "words":
            yield from other_head(purpose, config, text.hidden)
        elif not self.tied(config, text):
            yield from linear(self.head, text.vocab, text.hidden)

    def tied(self, config: Settings, text: Settings) -> bool:
        """The root decides in transformers 5; some classes let the nested configuration switch it on as well."""
        by_root = self.tied_by in ("root", "either") and config.tied
        return by_root or (self.tied_by in ("text", "either") and text.tied)


def words_only(config: Settings) -> bool:
    """True for `Gemma3ForCausalLM` and the like, which read nothing but text."""
    named = config.sequence("architectures")
    return bool(named) and str(named[0]).endswith("ForCausalLM")


FAMILIES: dict[str, Family] = {}
