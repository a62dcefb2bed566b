"""Gemma 4: heads of their own for full layers, shared caches, per-layer embeddings, experts beside a feed-forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.attention import on, window_of
from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.blocks.feed_forward import Mlp
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.families.dense import FOUR_NORMS, SLIDING
from hfbench.estimate.families.joined import Joined
from hfbench.estimate.family import DENSE, FULL, Decoder, Family
from hfbench.estimate.parts import Part, Parts, conv, linear, norm, on_layers, table, under, vector
from hfbench.estimate.settings import Settings

SHARED = "shared_with_an_earlier_layer"
FULL_SHARED, SLIDING_SHARED = f"{FULL}, {SHARED}", f"{SLIDING}, {SHARED}"
PATTERN = 6
"""Every sixth layer is full where the layers are not listed."""
GLOBAL_HEAD_DIM = 512
FAR = "wide"
"""The feed-forward of layers that share a cache, when it is twice as wide."""


def kinds(c: Settings) -> Sequence[str]:
    """The listed kinds, of which the last is always full; the last layers use the cache of an earlier one."""
    listed = [str(each) for each in c.sequence("layer_types")]
    found = listed or [SLIDING if (number + 1) % PATTERN else FULL for number in range(c.layers)]
    found = [*found[: c.layers - 1], FULL] if found else []
    own = c.layers - c.optional("num_kv_shared_layers")
    return [kind if number < own else f"{kind}, {SHARED}" for number, kind in enumerate(found)]


def feeds(c: Settings) -> Sequence[str]:
    """Which layers have the wide feed-forward."""
    own = c.layers - c.optional("num_kv_shared_layers")
    return [FAR if number >= own and c.flag("use_double_wide_mlp") else DENSE for number in range(c.layers)]


@dataclass(frozen=True, kw_only=True)
class GemmaAttention:
    """Norms on queries and keys; full layers may have fewer, larger heads and take their keys for values."""

    shared: bool = False
    full: bool = False

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under("self_attn", self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values of one layer, nothing where an earlier one keeps them."""
        if self.shared:
            return LayerCache(SHARED)
        heads, size = self._sizes(c)
        return attention_cache(kind, heads, size, window_of(kind, c))

    def _sizes(self, c: Settings) -> tuple[int, int]:
        if not self.full:
            return c.kv_heads, c.head_dim
        alike = c.flag("attention_k_eq_v") and c.optional("num_global_key_value_heads")
        return alike or c.kv_heads, c.size("global_head_dim", default=GLOBAL_HEAD_DIM)

    def _inside(self, c: Settings) -> Parts:
        heads, size = self._sizes(c)
        bias = on("attention_bias", c)
        yield from linear("q_proj", c.heads * size, c.hidden, bias)
        yield from norm("q_norm", size)
        yield from linear("o_proj", c.hidden, c.heads * size, bias)
        if self.shared:
            return
        yield from norm("k_norm", size)
        yield from linear("k_proj", heads * size, c.hidden, bias)
        if not (self.full and c.flag("attention_k_eq_v")):
            yield from linear("v_proj", heads * size, c.hidden, bias)


def layer_more(c: Settings) -> Parts:
    """The scalar of a layer, its own embedding, and the experts beside its feed-forward."""
    yield Part("layer_scalar", (1,), buffer=True)
    if narrow := c.optional("hidden_size_per_layer_input"):
        yield from linear("per_layer_input_gate", narrow, c.hidden)
        yield from linear("per_layer_projection", c.hidden, narrow)
        yield from norm("post_per_layer_input_norm", c.hidden)
    if c.flag("enable_moe_block"):
        experts, width = c.size("num_experts"), c.size("moe_intermediate_size")
        yield from linear("router.proj", experts, c.hidden)
        yield from vector("router.scale", c.hidden)
        yield from vector("router.per_expert_scale", experts)
        yield Part("experts.gate_up_proj", (experts, 2 * width, c.hidden))
        yield Part("experts.down_proj", (experts, c.hidden, width))
        for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"):
            yield from norm(name, c.hidden)


def embeddings(c: Settings) -> Parts:
    """One more embedding for all layers, in one table."""
    if narrow := c.optional("hidden_size_per_layer_input"):
        yield from table("embed_tokens_per_layer", c.size("vocab_size_per_layer_input"), c.layers * narrow)
        yield from linear("per_layer_model_projection", c.layers * narrow, c.hidden)
        yield from norm("per_layer_projection_norm", narrow)


def clipped(c: Settings, parts: Parts) -> Parts:
    """Projections that carry four bounds each, when they are clipped."""
    for part in parts:
        yield part
        if c.flag("use_clipped_linears") and len(part.shape) == 2:
            yield replace(part, name=f"{part.name}.bounds", shape=(), copies=4 * part.copies, buffer=True)


def vision(c: Settings) -> Parts:
    """Patches, positions of two axes, gated layers with norms on queries and keys, and a projection."""
    v, text = c.section("vision_config"), c.section("text_config")
    hidden = v.hidden
    heads, size = v.heads, v.head_dim
    inside = (
        *clipped(v, linear("self_attn.q_proj", heads * size, hidden)),
        *clipped(v, linear("self_attn.k_proj", v.kv_heads * size, hidden)),
        *clipped(v, linear("self_attn.v_proj", v.kv_heads * size, hidden)),
        *clipped(v, linear("self_attn.o_proj", hidden, heads * size)),
        *clipped(v, Mlp().parts(v)),
        *norm("self_attn.q_norm", size),
        *norm("self_attn.k_norm", size),
        *(part for name in FOUR_NORMS for part in norm(name, hidden)),
    )
    yield from linear("model.vision_tower.patch_embedder.input_proj", hidden, 3 * v.size("patch_size") ** 2)
    yield from vector(
        "model.vision_tower.patch_embedder.position_embedding_table", 2, v.size("position_embedding_size"), hidden
    )
    yield from on_layers("model.vision_tower.encoder.layers", range(v.layers), inside)
    if v.flag("standardize"):
        yield Part("model.vision_tower.std_bias", (hidden,), buffer=True)
        yield Part("model.vision_tower.std_scale", (hidden,), buffer=True)
    yield from linear("model.embed_vision.embedding_projection", text.hidden, hidden)


def audio(c: Settings) -> Parts:
    """Two strided convolutions over the spectrum, conformer layers (arXiv:2005.08100), and two projections."""
    a, text = c.section("audio_config"), c.section("text_config")
    hidden, out = a.hidden, a.size("output_proj_dims")
    first, second = a.sizes("subsampling_conv_channels")[:2]
    layer = EncoderLayer(hidden=hidden, width=4 * hidden, out="post", bias=False, mlp="", norms=())
    feed = (*linear("ffw_layer_1", 4 * hidden, hidden), *linear("ffw_layer_2", hidden, 4 * hidden))
    norms = (*norm("pre_layer_norm", hidden), *norm("post_layer_norm", hidden))
    size = hidden // a.heads
    attention = (part for part in layer.parts() if part.name.startswith("self_attn."))
    inside = (
        *clipped(a, attention),
        *linear("self_attn.relative_k_proj", a.heads * size, hidden),
        *vector("self_attn.per_dim_scale", size),
        *(part for each in "12" for part in under(f"feed_forward{each}", (*clipped(a, iter(feed)), *norms))),
        *clipped(a, linear("lconv1d.linear_start", 2 * hidden, hidden)),
        *clipped(a, linear("lconv1d.linear_end", hidden, hidden)),
        *conv("lconv1d.depthwise_conv1d", hidden, 1, a.size("conv_kernel_size")),
        *norm("lconv1d.pre_layer_norm", hidden),
        *norm("lconv1d.conv_norm", hidden),
        *(part for name in ("norm_pre_attn", "norm_post_attn", "norm_out") for part in norm(name, hidden)),
    )
    tower = (
        *conv("subsample_conv_projection.layer0.conv", first, 1, 3, 3),
        *norm("subsample_conv_projection.layer0.norm", first),
        *conv("subsample_conv_projection.layer1.conv", second, first, 3, 3),
        *norm("subsample_conv_projection.layer1.norm", second),
        *linear("subsample_conv_projection.input_proj_linear", hidden, first // 4 * second),
        *on_layers("layers", range(a.layers), inside),
        *linear("output_proj", out, hidden, True),
    )
    yield from under("model.audio_tower", tower)
    yield from linear("model.embed_audio.embedding_projection", text.hidden, out)


def towers(c: Settings) -> Parts:
    """Those that the configuration has."""
    for name, tower in (("vision_config", vision), ("audio_config", audio)):
        if isinstance(c.raw.get(name), dict):
            yield from tower(c)


GEMMA4 = Decoder(
    mixers={
        SLIDING: GemmaAttention(),
        FULL: GemmaAttention(full=True),
        SLIDING_SHARED: GemmaAttention(shared=True),
        FULL_SHARED: GemmaAttention(shared=True, full=True),
    },
    mixer_kinds=kinds,
    feeds={DENSE: Mlp(), FAR: Mlp(width=lambda c: 2 * c.width)},
    feed_kinds=feeds,
    norms=FOUR_NORMS,
    layer_more=layer_more,
    more=embeddings,
)

FAMILIES: dict[str, Family] = {
    "gemma4_text": GEMMA4,
    "gemma4": Joined(towers=towers, language="gemma4_text"),
}
