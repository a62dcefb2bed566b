"""Decoders with latent attention: DeepSeek V2 to V3.2, Kimi K2, GLM 5, and the compressed attention of DeepSeek V4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.feed_forward import Experts, Mlp
from hfbench.estimate.blocks.latent import Latent
from hfbench.estimate.blocks.recurrent import KimiDelta
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.families.experts import DEEPSEEK_MOE, MOE, dense_first, moe_after_first
from hfbench.estimate.family import DENSE, FULL, Decoder, Family
from hfbench.estimate.parts import Part, Parts, linear, norm, vector
from hfbench.estimate.settings import NotKnown, Settings

COMPRESSED, HEAVY, SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
RATIOS = {0: SLIDING, 4: COMPRESSED, 128: HEAVY}
"""DeepSeek V4's compress_ratios: tokens that one kept entry stands for."""

LINEAR = "linear_attention"
HASH_LAYERS = 3


@dataclass(frozen=True, kw_only=True)
class Indexed(Latent):
    """Latent attention whose layers may take the choice of an earlier layer's indexer."""

    indexer: bool = True

    def parts(self, c: Settings) -> Parts:
        """The tensors of a layer with an indexer."""
        yield from super().parts(c)
        yield from self.index_parts(c)


def index_kinds(c: Settings) -> Sequence[str]:
    """Layers with an indexer of their own are full, others share."""
    listed = c.sequence("indexer_types")
    if not listed:
        return [FULL] * c.layers
    return [FULL if each == "full" else "shared_index" for each in listed]


@dataclass(frozen=True, kw_only=True)
class CompressedAttention:
    """DeepSeek V4: a window of shared keys-and-values, and entries that each stand for many tokens."""

    def parts(self, c: Settings) -> Parts:
        """What every kind of layer has."""
        size, rank, groups = c.head_dim, c.size("q_lora_rank"), c.size("o_groups")
        out = groups * c.size("o_lora_rank")
        yield from vector("self_attn.sinks", c.heads)
        yield from linear("self_attn.q_a_proj", rank, c.hidden)
        yield from norm("self_attn.q_a_norm", rank)
        yield from linear("self_attn.q_b_proj", c.heads * size, rank)
        yield from linear("self_attn.kv_proj", size, c.hidden)
        yield from norm("self_attn.kv_norm", size)
        yield from linear("self_attn.o_a_proj", out, c.heads * size // groups)
        yield from linear("self_attn.o_b_proj", c.hidden, out)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """A window of one vector a token; the compressed entries are told apart by `entries`."""
        ratio = next((ratio for ratio, name in RATIOS.items() if name == kind), 0)
        index = c.size("index_head_dim") if kind == COMPRESSED else 0
        waiting = 2 * ratio * c.head_dim  # tokens and gates of an entry that is not whole yet
        if kind == COMPRESSED:  # in two series, and those of the entry before
            waiting = 3 * (waiting + 2 * ratio * index)
        return LayerCache(
            kind,
            shared=c.head_dim if ratio else 0,
            every=max(ratio, 1),
            index=index,
            state=c.size("sliding_window") * c.head_dim + waiting,
            told=2 * c.kv_heads * c.head_dim,
        )


def v4_kinds(c: Settings) -> Sequence[str]:
    """Kinds of layers, listed or told by their ratios."""
    listed = c.sequence("layer_types")
    if listed:
        return [str(each) for each in listed]
    ratios = c.sequence("compress_ratios")
    if any(ratio not in RATIOS for ratio in ratios):
        raise NotKnown("compress_ratios holds others than 0, 4 and 128")
    if ratios:
        return [RATIOS[ratio] for ratio in ratios]
    return [HEAVY if number < 2 or number % 2 == 0 else COMPRESSED for number in range(c.layers)]


def v4_feeds(c: Settings) -> Sequence[str]:
    """The first layers choose experts by a table of token ids."""
    hashed = c.number("num_hash_layers", default=HASH_LAYERS)
    return ["hash" if number < hashed else MOE for number in range(c.layers)]


def v4_compressor(c: Settings, kind: str) -> Parts:
    """What makes the entries of a layer that compresses."""
    if kind not in (COMPRESSED, HEAVY):
        return
    size, ratio, twice = c.head_dim, next(r for r, name in RATIOS.items() if name == kind), 1 + (kind == COMPRESSED)
    yield from _compressor("self_attn.compressor", ratio, size, twice, c.hidden)
    if kind == COMPRESSED:
        index, heads = c.size("index_head_dim"), c.size("index_n_heads")
        yield from _compressor("self_attn.compressor.indexer", ratio, index, twice, c.hidden)
        yield from linear("self_attn.compressor.indexer.q_b_proj", heads * index, c.size("q_lora_rank"))
        yield from linear("self_attn.compressor.indexer.scorer.weights_proj", heads, c.hidden)


def _compressor(module: str, ratio: int, size: int, twice: int, hidden: int) -> Parts:
    yield Part(f"{module}.position_bias", (ratio, twice * size))
    yield from linear(f"{module}.kv_proj", twice * size, hidden)
    yield from linear(f"{module}.gate_proj", twice * size, hidden)
    yield from norm(f"{module}.kv_norm", size)


def v4_streams(c: Settings) -> Parts:
    """Hyper-connections among several residual streams, before attention and before the experts."""
    streams = c.size("hc_mult")
    mixes = streams * (2 + streams)
    for name in ("attn_hc", "ffn_hc"):
        yield Part(f"{name}.fn", (mixes, streams * c.hidden))
        yield Part(f"{name}.base", (mixes,))
        yield Part(f"{name}.scale", (3,))


def v4_head(c: Settings) -> Parts:
    """What joins the streams at the end."""
    streams = c.size("hc_mult")
    yield Part("hc_head.hc_fn", (streams, streams * c.hidden))
    yield Part("hc_head.hc_base", (streams,))
    yield Part("hc_head.hc_scale", (1,))


@dataclass(frozen=True, kw_only=True)
class HashExperts(Experts):
    """Experts chosen by token id."""

    def _inside(self, c: Settings) -> Parts:
        yield from super()._inside(c)
        yield Part("gate.tid2eid", (c.vocab, c.size("num_experts_per_tok")), buffer=True)


def kimi_kinds(c: Settings) -> Sequence[str]:
    """Kimi Linear: the listed layers (from 1) attend to everything, else every fifth from the fifth on."""
    listed = c.sequence("layer_types")
    if listed:
        return [str(each) for each in listed]
    full = c.section("linear_attn_config").numbers("full_attn_layers")
    if full:
        return [FULL if number + 1 in full else LINEAR for number in range(c.layers)]
    return [FULL if number and number % 4 == 0 else LINEAR for number in range(c.layers)]


def kimi_feeds(c: Settings) -> Sequence[str]:
    """Kimi Linear: the listed kinds, else experts after the first dense layers."""
    if c.sequence("mlp_layer_types"):
        return dense_first(c)
    first = c.number("first_k_dense_replace", default=1)
    return [MOE if number >= first else DENSE for number in range(c.layers)]


V4_MOE = replace(DEEPSEEK_MOE, width=lambda c: c.size("moe_intermediate_size"), shared_bias="mlp_bias")
V3 = Decoder(mixers={FULL: Latent()}, feeds={DENSE: Mlp(), MOE: DEEPSEEK_MOE}, feed_kinds=moe_after_first)
KIMI_LINEAR = replace(
    V3, mixers={FULL: Latent(), LINEAR: KimiDelta()}, mixer_kinds=kimi_kinds, feed_kinds=kimi_feeds, ties=False
)
V32 = replace(V3, mixers={FULL: Indexed(), "shared_index": Latent()}, mixer_kinds=index_kinds)

FAMILIES: dict[str, Family] = {
    "deepseek_v2": replace(
        V3, feeds={DENSE: Mlp(bias="mlp_bias"), MOE: replace(DEEPSEEK_MOE, correction="", shared_bias="mlp_bias")}
    ),
    "deepseek_v3": V3,
    "kimi_k2": V3,
    "deepseek_v32": V32,
    "glm_moe_dsa": V32,
    "kimi_linear": KIMI_LINEAR,
    "glm4_moe_lite": replace(V3, feed_kinds=dense_first),
    "minicpm3": replace(V3, feeds={DENSE: Mlp(bias="mlp_bias")}),
    "deepseek_v4": Decoder(
        mixers={FULL: CompressedAttention()},
        mixer_kinds=v4_kinds,
        kind_more=v4_compressor,
        layer_more=v4_streams,
        more=v4_head,
        feeds={
            MOE: V4_MOE,
            "hash": HashExperts(
                count=V4_MOE.count,
                shared="shared_experts",
                shared_width=V4_MOE.shared_width,
                shared_bias=V4_MOE.shared_bias,
                width=V4_MOE.width,
            ),
        },
        feed_kinds=v4_feeds,
    ),
}
