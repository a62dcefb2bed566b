"""Families whose caches are known and whose parameters are not counted: Gemma 3n, Kimi K3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hfbench.estimate.blocks.attention import window_of
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.families.dense import SLIDING
from hfbench.estimate.families.gemma4 import SHARED
from hfbench.estimate.families.latent import KIMI_LINEAR
from hfbench.estimate.family import FULL, Family
from hfbench.estimate.parts import Parts
from hfbench.estimate.settings import NotKnown, Settings


@dataclass(frozen=True, kw_only=True)
class CachesOnly:
    """Caches by the family's own rules; parameters only from headers."""

    rule: Callable[[Settings], Sequence[LayerCache]]
    nested: str = ""

    def text(self, config: Settings) -> Settings:
        """The language model's settings."""
        return config.section(self.nested) if self.nested and self.nested in config.raw else config

    def parts(self, config: Settings) -> Parts:
        """Not counted."""
        raise NotKnown(f"not known for model_type {config.kind[:60]!r}")

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """By the rule."""
        return self.rule(self.text(config))


def gemma3n_caches(c: Settings) -> Sequence[LayerCache]:
    """Every fifth layer is full where they are not listed; the last layers share an earlier layer's cache."""
    listed = [str(each) for each in c.sequence("layer_types")]
    found = listed or [FULL if not (number + 1) % 5 else SLIDING for number in range(c.layers)]
    own = c.layers - c.optional("num_kv_shared_layers")
    return [
        attention_cache(kind, c.kv_heads, c.head_dim, window_of(kind, c)) if number < own else LayerCache(SHARED)
        for number, kind in enumerate(found[: c.layers])
    ]


GEMMA3N = CachesOnly(rule=gemma3n_caches, nested="text_config")

FAMILIES: dict[str, Family] = {
    "gemma3n": GEMMA3N,
    "gemma3n_text": GEMMA3N,
    "kimi_k3": CachesOnly(rule=KIMI_LINEAR.caches, nested="text_config"),
}
