"""Decoders in which most layers keep a state of fixed size and some attend to everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.attention import Attention
from hfbench.estimate.blocks.feed_forward import Experts, Mlp
from hfbench.estimate.blocks.recurrent import DeltaNet, Mamba1, Mamba2, ShortConv
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.families.experts import MOE, QWEN_SHARED, all_moe, moe_by_step
from hfbench.estimate.family import DENSE, FULL, Decoder, Family, Mixer
from hfbench.estimate.parts import Part, Parts, linear
from hfbench.estimate.settings import NotKnown, Settings

LINEAR, MAMBA, CONV, NOTHING = "linear_attention", "mamba", "conv", "none"
NEMOTRON = {"M": MAMBA, "*": FULL, "E": MOE, "-": DENSE}
"""Letters of `hybrid_override_pattern`."""


def delta_kinds(c: Settings) -> Sequence[str]:
    """Qwen3-Next and Qwen3.5: every n-th layer attends to everything."""
    listed = c.sequence("layer_types")
    if listed:
        return [str(each) for each in listed]
    step = c.size("full_attention_interval", default=4)
    return [LINEAR if (number + 1) % step else FULL for number in range(c.layers)]


@dataclass(frozen=True, kw_only=True)
class NoMixer:
    """A layer that is feed-forward alone."""

    def parts(self, c: Settings) -> Parts:
        """None."""
        return iter(())

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Nothing to remember."""
        return LayerCache(NOTHING)


def nemotron_kinds(c: Settings) -> Sequence[str]:
    """What each layer is: Mamba, attention, experts or feed-forward."""
    pattern = c.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        if strange := set(pattern) - NEMOTRON.keys():
            raise NotKnown(f"hybrid_override_pattern holds {sorted(strange)[0]!r}")
        return [NEMOTRON[letter] for letter in pattern]
    names = {"attention": FULL, "full_attention": FULL, "mlp": DENSE, "linear_attention": MAMBA}
    return [names.get(str(each), str(each)) for each in c.sequence("layers_block_type", "layer_types")]


def only(*kinds: str, otherwise: str) -> object:
    """Nemotron's layers as mixers (`otherwise` for the feed-forward ones) or as feed-forward."""
    return lambda c: [kind if kind in kinds else otherwise for kind in nemotron_kinds(c)]


@dataclass(frozen=True, kw_only=True)
class LatentExperts(Experts):
    """Nemotron-H: experts without gates, which may work on a narrower vector."""

    def _inside(self, c: Settings) -> Parts:
        count, width = self.count(c), self.width(c)
        narrow = c.optional("moe_latent_size") or c.hidden
        yield from linear("gate", count, c.hidden)
        yield Part("gate.e_score_correction_bias", (count,), buffer=True)
        yield Part("experts.up_proj", (count, width, narrow))
        yield Part("experts.down_proj", (count, narrow, width))
        if narrow != c.hidden:
            yield from linear("fc1_latent_proj", narrow, c.hidden, c.flag("mlp_bias"))
            yield from linear("fc2_latent_proj", c.hidden, narrow, c.flag("mlp_bias"))
        shared = c.optional("moe_shared_expert_intermediate_size")
        if shared:
            inside = Mlp(module="shared_experts", shape="plain", width=lambda _: shared, bias="mlp_bias")
            yield from inside.parts(c)


def jamba_kinds(c: Settings) -> Sequence[str]:
    """Attention at an offset in each period."""
    period, offset = c.size("attn_layer_period", default=8), c.optional("attn_layer_offset")
    return [FULL if number % period == offset else MAMBA for number in range(c.layers)]


def jamba_feeds(c: Settings) -> Sequence[str]:
    """Experts at an offset in each period, when there is more than one."""
    if c.size("num_experts", default=1) < 2:
        return [DENSE] * c.layers
    period, offset = c.size("expert_layer_period", default=2), c.optional("expert_layer_offset")
    return [MOE if number % period == offset else DENSE for number in range(c.layers)]


def lfm2_kinds(c: Settings) -> Sequence[str]:
    """Attention in the listed layers, a short convolution in the others."""
    listed = c.sequence("layer_types")
    if listed:
        return [str(each) for each in listed]
    full = c.numbers("full_attn_idxs")
    return [FULL if number in full or not full else CONV for number in range(c.layers)]


def lfm2_width(c: Settings) -> int:
    """LFM2 takes two thirds of the width it is told, rounded up to a multiple."""
    width = c.number("block_ff_dim", default=0) or c.width
    if not c.flag("block_auto_adjust_ff_dim", True):
        return width
    multiple = c.size("block_multiple_of", default=256)
    scaled = int(c.ratio("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    return -(-scaled // multiple) * multiple


GATED_ATTENTION = Attention(bias="attention_bias", out_bias="attention_bias", qk_norm="head", gate=True)
DELTA: dict[str, Mixer] = {FULL: GATED_ATTENTION, LINEAR: DeltaNet()}
QWEN3_5 = Decoder(mixers=DELTA, feeds={DENSE: Mlp()}, mixer_kinds=delta_kinds)
NEMOTRON_ATTENTION = Attention(module="mixer")
LFM2_ATTENTION = Attention(out="out_proj", qk_norm="head")
MAMBA_ONLY = Decoder(
    mixers={FULL: Mamba1(prefix="", module="mixer")},
    mixer_kinds=lambda c: [MAMBA] * c.layers,
    feeds={DENSE: None},
    norms=("norm",),
    module="backbone",
    embedding="embeddings",
    final_norm="norm_f",
)

FAMILIES: dict[str, Family] = {
    "qwen3_next": Decoder(
        mixers={FULL: GATED_ATTENTION, LINEAR: DeltaNet(joined=True)},
        mixer_kinds=delta_kinds,
        feeds={DENSE: Mlp(), MOE: QWEN_SHARED},
        feed_kinds=moe_by_step,
    ),
    "qwen3_5_text": QWEN3_5,
    "qwen3_5_moe_text": replace(QWEN3_5, feeds={MOE: QWEN_SHARED}, feed_kinds=all_moe),
    "nemotron_h": Decoder(
        mixers={FULL: NEMOTRON_ATTENTION, MAMBA: Mamba2(bias="use_bias"), NOTHING: NoMixer()},
        mixer_kinds=only(FULL, MAMBA, otherwise=NOTHING),  # type: ignore[arg-type]
        feeds={
            DENSE: Mlp(module="mixer", shape="plain", bias="mlp_bias"),
            MOE: LatentExperts(module="mixer", count=lambda c: c.size("n_routed_experts")),
            NOTHING: None,
        },
        feed_kinds=only(DENSE, MOE, otherwise=NOTHING),  # type: ignore[arg-type]
        norms=("norm",),
        embedding="embeddings",
        final_norm="norm_f",
        ties=False,
    ),
    "jamba": Decoder(
        mixers={FULL: Attention(), MAMBA: Mamba1(normed=True)},
        mixer_kinds=jamba_kinds,
        feeds={DENSE: Mlp(module="feed_forward"), MOE: Experts(module="feed_forward", router="router")},
        feed_kinds=jamba_feeds,
        norms=("input_layernorm", "pre_ff_layernorm"),
        final_norm="final_layernorm",
    ),
    "lfm2": Decoder(
        mixers={FULL: LFM2_ATTENTION, CONV: ShortConv()},
        mixer_kinds=lfm2_kinds,
        feeds={DENSE: Mlp(module="feed_forward", width=lfm2_width)},
        norms=("operator_norm", "ffn_norm"),
        final_norm="embedding_norm",
    ),
    "mamba": MAMBA_ONLY,
    "falcon_mamba": MAMBA_ONLY,
}
