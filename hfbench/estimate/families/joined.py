"""Language models with towers beside them: how a tower, a projector and a decoder make one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hfbench.estimate.caches import LayerCache
from hfbench.estimate.family import Decoder, Family, families
from hfbench.estimate.parts import Parts, linear, under
from hfbench.estimate.settings import NotKnown, Settings

TEXT = ("text_config", "llm_config", "language_config")


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A decoder inside a model of several kinds of input.

    `language` names the decoder's family, or is empty where the nested configuration says it. `towers` lists all
    that is not the decoder. Old files keep the text's settings at the root.
    """

    towers: Callable[[Settings], Parts]
    language: str = ""
    module: str = "model.language_model"
    head: str = "lm_head"
    tied_by: str = "root"

    def text(self, config: Settings) -> Settings:
        """The language model's settings, with what only the root says about its head."""
        name = next((each for each in TEXT if isinstance(config.raw.get(each), dict)), TEXT[0])
        if isinstance(config.raw.get(name), dict):
            return config.section(name)
        nested = {key: value for key, value in config.raw.items() if key != "model_type"}
        return Settings(nested, f"{config.kind}.{name}")

    def family(self, text: Settings) -> Decoder:
        """The decoder's family."""
        kind = self.language or str(text.raw.get("model_type") or text.get("model_type") or "")
        found = families().get(kind)
        if not isinstance(found, Decoder):
            raise NotKnown(f"not known for model_type {kind[:60]!r} of the language model")
        return found

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """Those of the language model."""
        text = self.text(config)
        return self.family(text).caches(text)

    def parts(self, config: Settings) -> Parts:
        """Towers, decoder, head."""
        text = self.text(config)
        family = self.family(text)
        yield from self.towers(config)
        yield from under(self.module, family.body(text))
        if not self.tied(config, text):
            yield from linear(self.head, text.vocab, text.hidden)

    def tied(self, config: Settings, text: Settings) -> bool:
        """The root decides in transformers 5, the nested configuration where the root is silent."""
        order = (text.raw,) if self.tied_by == "text" else (config.raw, text.raw, config.defaults)
        told = [each["tie_word_embeddings"] for each in (*order, text.defaults) if "tie_word_embeddings" in each]
        return next((each for each in told if isinstance(each, bool)), True)


FAMILIES: dict[str, Family] = {}
