"""Dense decoders of the Llama lineage: RMS norms, gated feed-forward, rotary positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hfbench.estimate.blocks.attention import Attention
from hfbench.estimate.blocks.feed_forward import Mlp
from hfbench.estimate.family import FULL, Decoder, Family, all_full
from hfbench.estimate.parts import Part, Parts, norm, times
from hfbench.estimate.settings import Settings

SLIDING = "sliding_attention"
FOUR_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def decoder(attention: Attention, mlp: Mlp = Mlp(), **more: object) -> Decoder:  # noqa: B008 - frozen
    """Layers that are all alike but for what they look back on."""
    return Decoder(mixers={FULL: attention}, feeds={"dense": mlp}, **more)  # type: ignore[arg-type]


def windowed_if_set(c: Settings) -> Sequence[str]:
    """Mistral and Phi-3: every layer slides when a window is given."""
    return all_full(c) if c.sequence("layer_types") or not c.optional("sliding_window") else [SLIDING] * c.layers


def windowed_above(c: Settings) -> Sequence[str]:
    """Qwen2 and Qwen3: layers from `max_window_layers` on slide, when `use_sliding_window` says so."""
    if c.sequence("layer_types") or not (c.flag("use_sliding_window") and c.optional("sliding_window")):
        return all_full(c)
    first = c.number("max_window_layers", default=0)
    return [FULL if number < first else SLIDING for number in range(c.layers)]


def windowed_late(c: Settings) -> Sequence[str]:
    """dots.llm1: layers from `max_window_layers` on slide when a window is given."""
    if c.sequence("layer_types") or not c.optional("sliding_window"):
        return all_full(c)
    first = c.number("max_window_layers", default=0)
    return [FULL if number < first else SLIDING for number in range(c.layers)]


def windowed_early(c: Settings) -> Sequence[str]:
    """Qwen2-MoE: every other layer below `max_window_layers` slides, when `use_sliding_window` says so."""
    if c.sequence("layer_types") or not (c.flag("use_sliding_window") and c.optional("sliding_window")):
        return all_full(c)
    end = c.number("max_window_layers", default=0)
    return [FULL if number % 2 or number >= end else SLIDING for number in range(c.layers)]


def windowed_without_rope(c: Settings) -> Sequence[str]:
    """SmolLM3: layers without rotary positions slide, when `use_sliding_window` says so."""
    if c.sequence("layer_types") or not (c.flag("use_sliding_window") and c.optional("sliding_window")):
        return all_full(c)
    step, rotary = c.size("no_rope_layer_interval", default=4), c.sequence("no_rope_layers")
    rotary = rotary or tuple(bool((number + 1) % step) for number in range(c.layers))
    return [FULL if each else SLIDING for each in rotary]


def every_other(c: Settings) -> Sequence[str]:
    """Gemma 2 and gpt-oss: a sliding layer, then a full one."""
    return all_full(c) if c.sequence("layer_types") else [FULL if number % 2 else SLIDING for number in range(c.layers)]


def one_full_in(name: str, default: int) -> object:
    """Every n-th layer is full, n under `name` where there is one; the others slide."""

    def kinds(c: Settings) -> Sequence[str]:
        if c.sequence("layer_types"):
            return all_full(c)
        step = (c.optional(name) if name else 0) or default
        return [SLIDING if (number + 1) % step else FULL for number in range(c.layers)]

    return kinds


def first_full_in_four(c: Settings) -> Sequence[str]:
    """CWM: a full layer, then three that slide."""
    return all_full(c) if c.sequence("layer_types") else [SLIDING if number % 4 else FULL for number in range(c.layers)]


def exaone_kinds(c: Settings) -> Sequence[str]:
    """EXAONE 4: a pattern such as LLLG, repeated; all full without a window."""
    pattern = c.get("sliding_window_pattern")
    if c.sequence("layer_types") or not c.optional("sliding_window"):
        return all_full(c)
    step = len(pattern) if isinstance(pattern, str) and pattern else pattern if isinstance(pattern, int) else 4
    return [SLIDING if (number + 1) % max(step, 1) else FULL for number in range(c.layers)]


def apertus_activation(c: Settings) -> Parts:
    """The learned slopes of the activation."""
    yield Part("mlp.act_fn.alpha_p", (1,))
    yield Part("mlp.act_fn.alpha_n", (1,))
    yield Part("mlp.act_fn.beta", (), buffer=True)
    yield Part("mlp.act_fn.eps", (), buffer=True)


def stablelm_norms(c: Settings) -> Parts:
    """A second norm unless attention and feed-forward are parallel, and perhaps one for each head."""
    if not c.flag("use_parallel_residual"):
        yield from norm("post_attention_layernorm", c.hidden, True)
    if c.flag("qk_layernorm"):
        yield from times(c.heads, norm("self_attn.q_layernorm.norms", c.head_dim))
        yield from times(c.kv_heads, norm("self_attn.k_layernorm.norms", c.head_dim))


PLAIN = Attention()
BIASED = Attention(bias="attention_bias", out_bias="attention_bias")
LLAMA = decoder(BIASED, Mlp(bias="mlp_bias"))
MISTRAL = decoder(PLAIN, mixer_kinds=windowed_if_set)
QWEN2 = decoder(Attention(bias=True), mixer_kinds=windowed_above)
QWEN3 = decoder(replace(BIASED, qk_norm="head"), mixer_kinds=windowed_above)
GEMMA3 = decoder(
    replace(BIASED, qk_norm="head"), norms=FOUR_NORMS, mixer_kinds=one_full_in("sliding_window_pattern", 6)
)
OLMO2_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
GLM4_NORMS = ("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm")

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "granite": LLAMA,
    "cwm": decoder(PLAIN, Mlp(bias="mlp_bias"), mixer_kinds=first_full_in_four),
    "smollm3": replace(LLAMA, mixer_kinds=windowed_without_rope),
    "mimo": QWEN2,
    "baichuan": decoder(Attention(fused=True)),
    "internlm2": decoder(Attention(bias="bias", out_bias="bias", fused=True)),
    "minicpm": LLAMA,
    "mistral": MISTRAL,
    "ministral": MISTRAL,
    "ministral3": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "gemma": decoder(BIASED),
    "gemma2": decoder(BIASED, norms=FOUR_NORMS, mixer_kinds=every_other),
    "gemma3_text": GEMMA3,
    "olmo": decoder(BIASED, norms=(), final_norm=""),
    "olmo2": decoder(replace(BIASED, qk_norm="all"), norms=OLMO2_NORMS),
    "olmo3": decoder(replace(BIASED, qk_norm="all"), norms=OLMO2_NORMS, mixer_kinds=one_full_in("", 4)),
    "exaone4": decoder(Attention(qk_norm="head"), norms=OLMO2_NORMS, mixer_kinds=exaone_kinds),
    "phi3": decoder(Attention(fused=True), Mlp(shape="fused"), mixer_kinds=windowed_if_set),
    "glm": decoder(Attention(bias="attention_bias"), Mlp(shape="fused")),
    "glm4": decoder(Attention(bias="attention_bias"), Mlp(shape="fused"), norms=GLM4_NORMS),
    "glm4v_text": decoder(Attention(bias=True), Mlp(shape="fused"), norms=GLM4_NORMS),
    "seed_oss": decoder(Attention(bias="attention_bias", out_bias="attention_out_bias"), Mlp(bias="mlp_bias")),
    "ernie4_5": decoder(Attention(bias="use_bias", out_bias="use_bias"), Mlp(bias="use_bias")),
    "hunyuan_v1_dense": decoder(replace(BIASED, qk_norm="head")),
    "helium": decoder(Attention(bias="attention_bias", square_out=True), Mlp(bias="mlp_bias")),
    "arcee": decoder(BIASED, Mlp(shape="plain", bias="mlp_bias")),
    "apertus": decoder(
        replace(BIASED, qk_norm="head"),
        Mlp(shape="plain", bias="mlp_bias"),
        norms=("attention_layernorm", "feedforward_layernorm"),
        layer_more=apertus_activation,
    ),
    "nemotron": decoder(BIASED, Mlp(shape="plain", bias="mlp_bias"), norm_bias=True),
    "starcoder2": decoder(
        Attention(bias="use_bias", out_bias="use_bias"),
        Mlp(shape="plain", bias="use_bias"),
        norm_bias=True,
        mixer_kinds=windowed_if_set,
    ),
    "stablelm": decoder(
        Attention(bias="use_qkv_bias", square_out=True),
        norms=("input_layernorm",),
        norm_bias=True,
        layer_more=stablelm_norms,
    ),
    "cohere": decoder(replace(BIASED, qk_norm="heads", qk_norm_if="use_qk_norm"), norms=("input_layernorm",)),
    "cohere2": decoder(BIASED, norms=("input_layernorm",), mixer_kinds=one_full_in("sliding_window_pattern", 4)),
}
