"""Llama 4's language model and Llama 3.2's vision model: chunked attention, cross attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.estimate.blocks.attention import Attention
from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.blocks.feed_forward import Experts, Mlp
from hfbench.estimate.caches import KEYS_AND_VALUES, LayerCache
from hfbench.estimate.families.experts import MOE
from hfbench.estimate.families.joined import Joined
from hfbench.estimate.family import DENSE, FULL, Decoder, Family
from hfbench.estimate.parts import Part, Parts, conv, linear, norm, on_layers, table, under
from hfbench.estimate.settings import Settings

CROSS, CHUNKED = "cross_attention", "chunked_attention"
CROSSED = frozenset({3, 8, 13, 18, 23, 28, 33, 38})
ASPECT_RATIOS = 8
"""Of Llama 3.2 Vision, where its configuration does not list them."""
MORE_WORDS = 8
"""Rows that Llama 3.2 Vision's embedding has beyond the vocabulary."""


@dataclass(frozen=True, kw_only=True)
class CrossAttention:
    """Text looks at the tokens of an image, whose keys and values are made once."""

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        keys = c.kv_heads * c.head_dim
        yield Part("cross_attn_attn_gate", (1,))
        yield Part("cross_attn_mlp_gate", (1,))
        inside = (
            *linear("q_proj", c.heads * c.head_dim, c.hidden),
            *linear("k_proj", keys, c.hidden),
            *linear("v_proj", keys, c.hidden),
            *linear("o_proj", c.hidden, c.heads * c.head_dim),
            *norm("q_norm", c.head_dim),
            *norm("k_norm", c.head_dim),
        )
        yield from under("cross_attn", inside)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values of one image of as many tiles as the model allows."""
        tokens = c.optional("vision_tokens")
        return LayerCache(kind, heads=c.kv_heads, per_head=KEYS_AND_VALUES * c.head_dim, fixed=tokens)


def mllama_kinds(c: Settings) -> Sequence[str]:
    """The listed layers look at the image instead of the text."""
    crossed = c.numbers("cross_attention_layers") if c.get("cross_attention_layers") is not None else CROSSED
    return [CROSS if number in crossed else FULL for number in range(c.layers)]


@dataclass(frozen=True, kw_only=True)
class Mllama(Joined):
    """Llama 3.2 Vision: the text's cross attention needs the number of image tokens."""

    def text(self, config: Settings) -> Settings:
        """The language model's settings, and how many tokens an image has."""
        found = super().text(config)
        v = config.section("vision_config")
        patches = (v.size("image_size") // v.size("patch_size")) ** 2 + 1
        return Settings({**found.raw, "vision_tokens": patches * v.size("max_num_tiles")}, found.kind, found.cls)

    def parts(self, config: Settings) -> Parts:
        """The embedding has a few rows more than the vocabulary."""
        text = self.text(config)
        for part in super().parts(config):
            if part.name in (f"{self.module}.embed_tokens.weight", "model.embed_tokens.weight"):
                part = Part(part.name, (text.vocab + MORE_WORDS, text.hidden))
            yield part


def mllama_towers(c: Settings) -> Parts:
    """Tiles with positions, local layers, gated global layers, one projection."""
    v, text = c.section("vision_config"), c.section("text_config")
    hidden, patch = v.size("hidden_size"), v.size("patch_size")
    patches, tiles = (v.size("image_size") // patch) ** 2 + 1, v.size("max_num_tiles")
    ratios = (len(v.sequence("supported_aspect_ratios")) or ASPECT_RATIOS) + 1
    layer = EncoderLayer(
        hidden=hidden,
        width=v.size("intermediate_size"),
        bias=False,
        out="o_proj",
        norms=("input_layernorm", "post_attention_layernorm"),
    )
    gated = (Part("gate_attn", (1,)), Part("gate_ffn", (1,)), *layer.parts())
    inside = (
        Part("class_embedding", (hidden,)),
        *conv("patch_embedding", hidden, v.size("num_channels", default=3), patch, patch),
        Part("gated_positional_embedding.gate", (1,)),
        Part("gated_positional_embedding.embedding", (patches, hidden)),
        *table("gated_positional_embedding.tile_embedding", ratios, tiles * patches * hidden),
        Part("pre_tile_positional_embedding.gate", (1,)),
        *table("pre_tile_positional_embedding.embedding", ratios, tiles * hidden),
        Part("post_tile_positional_embedding.gate", (1,)),
        *table("post_tile_positional_embedding.embedding", ratios, tiles * hidden),
        *norm("layernorm_pre", hidden, True),
        *norm("layernorm_post", hidden, True),
        *on_layers("transformer.layers", range(v.size("num_hidden_layers")), layer.parts()),
        *on_layers("global_transformer.layers", range(v.size("num_global_layers")), gated),
    )
    yield from under("model.vision_model", inside)
    yield from linear("model.multi_modal_projector", text.hidden, v.size("vision_output_dim"), True)


def llama4_kinds(c: Settings) -> Sequence[str]:
    """Layers without rotary positions, every fourth, attend to everything; others to their chunk."""
    listed = c.sequence("layer_types")
    if listed and "layer_types" in c.raw:
        return [str(each) for each in listed]
    rotary = c.raw.get("no_rope_layers")
    if isinstance(rotary, list) and len(rotary) >= c.layers:
        return [CHUNKED if each else FULL for each in rotary]
    step = c.size("no_rope_layer_interval", default=4)
    return [CHUNKED if (number + 1) % step else FULL for number in range(c.layers)]


def llama4_feeds(c: Settings) -> Sequence[str]:
    """Experts in the listed layers, or in every n-th."""
    listed = c.raw.get("moe_layers")
    if isinstance(listed, list):
        return [MOE if number in listed else DENSE for number in range(c.layers)]
    step = c.size("interleave_moe_layer_step", default=1)
    return [MOE if (number + 1) % step == 0 else DENSE for number in range(c.layers)]


FAMILIES: dict[str, Family] = {
    "llama4_text": Decoder(
        mixers={FULL: Attention(bias="attention_bias", out_bias="attention_bias")},
        mixer_kinds=llama4_kinds,
        feeds={
            DENSE: Mlp(module="feed_forward", width=lambda c: c.size("intermediate_size_mlp")),
            MOE: Experts(
                module="feed_forward",
                router="router",
                width=lambda c: c.width,
                shared="shared_expert",
                shared_width=lambda c: c.width,
            ),
        },
        feed_kinds=llama4_feeds,
    ),
    "mllama_text_model": Decoder(
        mixers={FULL: Attention(), CROSS: CrossAttention()}, mixer_kinds=mllama_kinds, feeds={DENSE: Mlp()}
    ),
    "mllama": Mllama(towers=mllama_towers, language="mllama_text_model", tied_by=""),
}
