"""Families whose caches are known and whose parameters are not counted yet: Gemma 3n and 4, Kimi Linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hfbench.estimate.blocks.attention import window_of
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.family import FULL, Family, all_full
from hfbench.estimate.parts import Parts
from hfbench.estimate.settings import NotKnown, Settings

SHARED = "shared_with_an_earlier_layer"


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


def gemma_caches(c: Settings) -> Sequence[LayerCache]:
    """Full layers may have heads of their own size and number; the last layers share an earlier layer's cache."""
    own = c.layers - c.optional("num_kv_shared_layers")
    caches = []
    for number, kind in enumerate(all_full(c)):
        if number >= own:
            caches.append(LayerCache(SHARED))
            continue
        full = kind == FULL
        heads = (c.optional("num_global_key_value_heads") if full else 0) or c.kv_heads
        size = (c.optional("global_head_dim") if full else 0) or c.head_dim
        caches.append(attention_cache(kind, heads, size, window_of(kind, c)))
    return caches


def kimi_linear_caches(c: Settings) -> Sequence[LayerCache]:
    """Listed layers (from 1) keep a latent vector a token, the others a state (Kimi Linear, arXiv:2510.26692)."""
    linear = c.section("linear_attn_config")
    full = linear.numbers("full_attn_layers")
    heads, size = linear.size("num_heads"), linear.size("head_dim")
    nope, rope = c.size("qk_nope_head_dim"), c.number("qk_rope_head_dim")
    latent = LayerCache(
        "latent_attention",
        shared=c.size("kv_lora_rank") + rope,
        expanded=(c.heads, nope + rope + c.size("v_head_dim")),
    )
    inputs = 3 * heads * size * linear.size("short_conv_kernel_size")
    state = LayerCache("linear_attention", state=inputs, state32=heads * size * size)
    return [latent if number + 1 in full else state for number in range(c.layers)]


GEMMA = CachesOnly(rule=gemma_caches, nested="text_config")
KIMI = CachesOnly(rule=kimi_linear_caches, nested="text_config")

FAMILIES: dict[str, Family] = {
    "gemma3n": GEMMA,
    "gemma3n_text": GEMMA,
    "gemma4": GEMMA,
    "gemma4_text": GEMMA,
    "kimi_linear": KIMI,
    "kimi_k3": KIMI,
}
