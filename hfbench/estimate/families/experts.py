"""Decoders with mixtures of experts and ordinary attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.attention import Attention
from hfbench.estimate.blocks.feed_forward import Experts, Mlp, moe_width
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.families.dense import (
    PLAIN,
    every_other,
    windowed_above,
    windowed_early,
    windowed_if_set,
    windowed_late,
)
from hfbench.estimate.family import DENSE, FULL, Decoder, Family, Mixer
from hfbench.estimate.parts import Parts, linear, norm, under
from hfbench.estimate.settings import Settings

MOE = "moe"


def all_moe(c: Settings) -> Sequence[str]:
    """Every layer has experts."""
    return [MOE] * c.layers


def moe_by_step(c: Settings) -> Sequence[str]:
    """Qwen: experts every `decoder_sparse_step` layers, but not in `mlp_only_layers`."""
    step, dense = c.optional("decoder_sparse_step") or 1, c.numbers("mlp_only_layers")
    return [DENSE if number in dense or (number + 1) % step else MOE for number in range(c.layers)]


def moe_after_first(c: Settings) -> Sequence[str]:
    """DeepSeek and GLM: the first layers are dense; a listed frequency or kind decides for each layer."""
    listed = c.sequence("mlp_layer_types")
    if listed:
        return [DENSE if each == DENSE else MOE for each in listed]
    listed = c.sequence("moe_layer_freq")
    if listed:
        return [MOE if each else DENSE for each in listed]
    first, step = c.optional("first_k_dense_replace"), c.optional("moe_layer_freq") or 1
    return [MOE if number >= first and number % step == 0 else DENSE for number in range(c.layers)]


def dense_first(c: Settings) -> Sequence[str]:
    """GLM 4.7 Flash: the listed kinds, else one dense layer before those with experts."""
    listed = c.sequence("mlp_layer_types") or (DENSE, *[MOE] * (c.layers - 1))
    return [DENSE if each == DENSE else MOE for each in listed]


def some(*count: str, width: Callable[[Settings], int] = moe_width) -> Callable[[Settings], int]:
    """The width of shared experts held as one: their number times the width of each."""
    return lambda c: c.optional(*count) * width(c)


def gqa_moe(
    attention: Attention,
    experts: Experts,
    *,
    feed_kinds: Callable[[Settings], Sequence[str]] = all_moe,
    **more: object,
) -> Decoder:
    """A decoder whose layers have experts, some of them perhaps a dense feed-forward."""
    feeds = {DENSE: more.pop("dense", Mlp()), MOE: experts}
    return Decoder(mixers={FULL: attention}, feeds=feeds, feed_kinds=feed_kinds, **more)  # type: ignore[arg-type]


def ernie_kinds(c: Settings) -> Sequence[str]:
    """ERNIE 4.5: experts between two layer numbers, at an interval."""
    first, step = c.optional("moe_layer_start_index"), c.optional("moe_layer_interval") or 1
    end = c.get("moe_layer_end_index")
    last = end if type(end) is int and end >= 0 else c.layers - 1
    return [MOE if first <= n <= last and (n + 1) % step == 0 else DENSE for n in range(c.layers)]


@dataclass(frozen=True, kw_only=True)
class SparseIndexed:
    """MiniMax M3: grouped attention with an indexer over blocks."""

    attention: Attention

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        sparse = c.section("sparse_attention_config")
        size = sparse.size("sparse_index_dim", "index_head_dim")
        heads = sparse.size("sparse_num_index_heads", "index_n_heads")
        yield from self.attention.parts(c)
        inside = (
            *linear("q_proj", heads * size, c.hidden),
            *linear("k_proj", size, c.hidden),
            *norm("q_norm", size),
            *norm("k_norm", size),
        )
        yield from under("self_attn.indexer", inside)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values, and one index key a token."""
        kept = self.attention.cache(c, kind)
        size = c.section("sparse_attention_config").size("sparse_index_dim", "index_head_dim")
        return replace(kept, index=size)


def minimax3_mixers(c: Settings) -> Sequence[str]:
    """Which layers choose their tokens."""
    listed = c.sequence("layer_types") or tuple(
        "minimax_m3_sparse" if each else FULL
        for each in c.section("sparse_attention_config").sequence("sparse_attention_freq")
    )
    return [str(each) for each in listed] or [FULL] * c.layers


def granite_shared(c: Settings) -> Parts:
    """The feed-forward that every token passes, when it has a width."""
    width = c.optional("shared_intermediate_size")
    return Mlp(module="shared_mlp", shape="fused", width=lambda _: width).parts(c) if width else iter(())


QWEN_MOE = Experts(width=lambda c: c.size("moe_intermediate_size"))
QWEN_SHARED = replace(
    QWEN_MOE,
    shared="shared_expert",
    shared_width=lambda c: c.optional("shared_expert_intermediate_size"),
    shared_gate=True,
)
DEEPSEEK_MOE = Experts(
    correction="router",
    count=lambda c: c.size("n_routed_experts", "num_experts"),
    shared="shared_experts",
    shared_width=some("n_shared_experts", "num_shared_experts"),
)
M3_ATTENTION = Attention(qk_norm="head")
M3_MIXERS: dict[str, Mixer] = {FULL: M3_ATTENTION, "minimax_m3_sparse": SparseIndexed(attention=M3_ATTENTION)}
GRANITE_MOE = Experts(module="block_sparse_moe", router="router")
BIASED = Attention(bias="attention_bias", out_bias="attention_bias")

FAMILIES: dict[str, Family] = {
    "mixtral": gqa_moe(PLAIN, Experts(), mixer_kinds=windowed_if_set),
    "qwen2_moe": gqa_moe(Attention(bias="qkv_bias"), QWEN_SHARED, feed_kinds=moe_by_step, mixer_kinds=windowed_early),
    "qwen3_moe": gqa_moe(replace(BIASED, qk_norm="head"), QWEN_MOE, feed_kinds=moe_by_step, mixer_kinds=windowed_above),
    "olmoe": gqa_moe(replace(BIASED, qk_norm="hidden"), Experts()),
    "granitemoe": gqa_moe(BIASED, GRANITE_MOE),
    "granitemoeshared": gqa_moe(BIASED, GRANITE_MOE, layer_more=granite_shared),
    "phimoe": gqa_moe(
        BIASED, Experts(router="router"), norm_bias=True, head_bias="lm_head_bias", mixer_kinds=windowed_if_set
    ),
    "gpt_oss": gqa_moe(
        replace(BIASED, sinks=True), Experts(router="router", router_bias=True, bias=True), mixer_kinds=every_other
    ),
    "minimax_m2": gqa_moe(Attention(qk_norm="all"), Experts(correction="module")),
    "glm4_moe": gqa_moe(
        Attention(bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm"),
        DEEPSEEK_MOE,
        feed_kinds=moe_after_first,
    ),
    "dots1": gqa_moe(
        replace(BIASED, qk_norm="head"), DEEPSEEK_MOE, feed_kinds=moe_after_first, mixer_kinds=windowed_late
    ),
    "minimax_m3_vl_text": Decoder(
        mixers=M3_MIXERS,
        mixer_kinds=minimax3_mixers,
        feeds={
            DENSE: Mlp(shape="fused", width=lambda c: c.size("dense_intermediate_size")),
            MOE: replace(
                DEEPSEEK_MOE,
                count=lambda c: c.size("experts"),
                width=lambda c: c.width,
                shared_width=lambda c: c.size("shared_intermediate_size"),
                shared_shape="fused",
            ),
        },
        feed_kinds=moe_after_first,
    ),
}
