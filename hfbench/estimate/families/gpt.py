"""Decoders of the GPT lineage: LayerNorms with biases, plain feed-forward, and joined projections."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hfbench.estimate.blocks.attention import Attention
from hfbench.estimate.blocks.feed_forward import Mlp
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.family import FULL, Decoder, Family
from hfbench.estimate.parts import Part, Parts, linear, norm, table, under
from hfbench.estimate.settings import NotKnown, Settings

OPT_OFFSET = 2
"""Rows that OPT's position table has before the first position."""


@dataclass(frozen=True, kw_only=True)
class JoinedAttention:
    """One projection makes queries, keys and values; the sizes follow the family's own rules."""

    module: str
    joined: str
    out: str
    bias: bool = True
    out_bias: bool = True
    bias_flag: str = ""

    def kv_heads(self, c: Settings) -> int:
        """As many as query heads, but one for multi-query and as counted in Falcon's newer architecture."""
        if c.flag("new_decoder_architecture"):
            return c.kv_heads
        return 1 if c.flag("multi_query") else c.heads

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        flag = c.flag(self.bias_flag) if self.bias_flag else True
        out = c.hidden + 2 * self.kv_heads(c) * c.head_dim
        inside = (
            *linear(self.joined, out, c.hidden, self.bias and flag),
            *linear(self.out, c.hidden, c.hidden, self.out_bias and flag),
        )
        return under(self.module, inside)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values of one layer."""
        return attention_cache(kind, self.kv_heads(c), c.head_dim)


def all_heads(c: Settings) -> int:
    """No grouping: as many key as query heads."""
    return c.heads


def four_times(c: Settings) -> int:
    """The inner width, four times the hidden size where nothing is said."""
    return c.number("width", default=0) or 4 * c.hidden


def gpt(attention: JoinedAttention | Attention, mlp: Mlp, **more: object) -> Decoder:
    """A decoder with LayerNorms."""
    told: dict[str, object] = {"norm_bias": True, "norms": ("ln_1", "ln_2"), "module": "transformer", "stack": "h"}
    told |= {"embedding": "wte", "final_norm": "ln_f", **more}
    return Decoder(mixers={FULL: attention}, feeds={"dense": mlp}, **told)  # type: ignore[arg-type]


def cross_attention(c: Settings) -> Parts:
    """Attention to an encoder, when GPT-2 is the decoder of one."""
    if c.flag("add_cross_attention"):
        yield from linear("crossattention.c_attn", 2 * c.hidden, c.hidden, True)
        yield from linear("crossattention.q_attn", c.hidden, c.hidden, True)
        yield from linear("crossattention.c_proj", c.hidden, c.hidden, True)
        yield from norm("ln_cross_attn", c.hidden, True)


def positions(c: Settings) -> Parts:
    """Learned positions."""
    return table("wpe", c.size("positions"), c.hidden)


def plain(module: str, up: str, down: str, bias: bool | str = True) -> Mlp:
    """Up and down with biases."""
    return Mlp(shape="plain", module=module, up=up, down=down, bias=bias, width=four_times)


def opt_more(c: Settings) -> Parts:
    """Positions, the projections of a narrower embedding, and the norm of models that normalise first."""
    yield from table("embed_positions", c.size("positions") + OPT_OFFSET, c.hidden)
    narrow = opt_embedding(c)
    if narrow != c.hidden:
        yield from linear("project_in", c.hidden, narrow)
        yield from linear("project_out", narrow, c.hidden)
    last = c.flag("do_layer_norm_before", True) and not c.flag("_remove_final_layer_norm")
    if last and c.flag("layer_norm_elementwise_affine", True):
        yield from norm("final_layer_norm", c.hidden, True)


def opt_norms(c: Settings) -> Parts:
    """Two norms a layer, with weights unless they are switched off."""
    if c.flag("layer_norm_elementwise_affine", True):
        yield from norm("self_attn_layer_norm", c.hidden, True)
        yield from norm("final_layer_norm", c.hidden, True)


def opt_embedding(c: Settings) -> int:
    """Width of the embedding and of the head."""
    return c.optional("word_embed_proj_dim") or c.hidden


@dataclass(frozen=True, kw_only=True)
class Opt(Decoder):
    """OPT: the embedding may be narrower than the layers."""

    def body(self, c: Settings) -> Parts:
        """All but the head."""
        yield from table(self.embedding, c.vocab, opt_embedding(c))
        yield from self.layers(c)
        yield from self.more(c)


def falcon_norms(c: Settings) -> Parts:
    """One norm a layer, two for sequential blocks and for the newer architecture."""
    if c.flag("new_decoder_architecture") and c.get("num_ln_in_parallel_attn") in (None, 2):
        names = ["ln_attn", "ln_mlp"]
    elif c.flag("new_decoder_architecture") or c.flag("parallel_attn", True):
        names = ["input_layernorm"]
    else:
        names = ["input_layernorm", "post_attention_layernorm"]
    for name in names:
        yield from norm(name, c.hidden, True)


def bloom_more(c: Settings) -> Parts:
    """The norm after the embedding."""
    return norm("word_embeddings_layernorm", c.hidden, True)


def persimmon_norms(c: Settings) -> Parts:
    """Norms of queries and keys."""
    if c.flag("qk_layernorm", True):
        yield from norm("self_attn.q_layernorm", c.head_dim, True)
        yield from norm("self_attn.k_layernorm", c.head_dim, True)


def qwen_width(c: Settings) -> int:
    """Qwen halves its inner width into gate and up."""
    if "visual" in c.raw:
        raise NotKnown("the tower of Qwen-VL is not counted")
    return c.width // 2


@dataclass(frozen=True, kw_only=True)
class ChatGlmAttention:
    """ChatGLM 2 and 3: a joined projection with grouped keys and values."""

    def groups(self, c: Settings) -> int:
        """Key and value heads."""
        return c.size("multi_query_group_num") if c.flag("multi_query_attention") else c.heads

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        size = c.size("kv_channels", default=max(1, c.hidden // c.heads))
        out = size * (c.heads + 2 * self.groups(c))
        bias = c.flag("add_bias_linear")
        yield from linear("self_attention.query_key_value", out, c.hidden, bias or c.flag("add_qkv_bias"))
        yield from linear("self_attention.dense", c.hidden, size * c.heads, bias)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values of one layer."""
        return attention_cache(kind, self.groups(c), c.size("kv_channels", default=max(1, c.hidden // c.heads)))


@dataclass(frozen=True, kw_only=True)
class ChatGlmMlp:
    """One tensor for gate and up."""

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        yield from linear("mlp.dense_h_to_4h", 2 * c.width, c.hidden, c.flag("add_bias_linear"))
        yield from linear("mlp.dense_4h_to_h", c.hidden, c.width, c.flag("add_bias_linear"))


def chatglm_more(c: Settings) -> Parts:
    """The head, which is never tied, and the frequencies that files store."""
    yield Part(
        "rotary_pos_emb.inv_freq", (c.size("kv_channels", default=max(1, c.hidden // c.heads)) // 4,), buffer=True
    )
    yield from linear("output_layer", c.vocab, c.hidden)


GPT2_MLP = plain("mlp", "c_fc", "c_proj")
GPT2 = gpt(
    JoinedAttention(module="attn", joined="c_attn", out="c_proj"), GPT2_MLP, more=positions, layer_more=cross_attention
)
GPTJ = gpt(
    Attention(module="attn", out="out_proj", kv_heads=all_heads),
    plain("mlp", "fc_in", "fc_out"),
    norms=("ln_1",),
    head_bias=True,
)
PHI = Decoder(
    mixers={
        FULL: Attention(
            bias=True, out_bias=True, out="dense", qk_norm="head", qk_norm_if="qk_layernorm", norm_bias=True
        )
    },
    feeds={"dense": plain("mlp", "fc1", "fc2")},
    norms=("input_layernorm",),
    norm_bias=True,
    final_norm="final_layernorm",
    head_bias=True,
)
NEOX = Decoder(
    mixers={
        FULL: JoinedAttention(module="attention", joined="query_key_value", out="dense", bias_flag="attention_bias")
    },
    feeds={"dense": plain("mlp", "dense_h_to_4h", "dense_4h_to_h")},
    norm_bias=True,
    module="gpt_neox",
    embedding="embed_in",
    final_norm="final_layer_norm",
    head="embed_out",
)
FALCON = gpt(
    JoinedAttention(module="self_attention", joined="query_key_value", out="dense", bias_flag="bias"),
    plain("mlp", "dense_h_to_4h", "dense_4h_to_h", "bias"),
    norms=(),
    layer_more=falcon_norms,
    embedding="word_embeddings",
)
BLOOM = gpt(
    JoinedAttention(module="self_attention", joined="query_key_value", out="dense"),
    replace(plain("mlp", "dense_h_to_4h", "dense_4h_to_h"), width=lambda c: 4 * c.hidden),
    norms=("input_layernorm", "post_attention_layernorm"),
    embedding="word_embeddings",
    more=bloom_more,
)
MPT = gpt(
    JoinedAttention(module="attn", joined="Wqkv", out="out_proj", bias=False, out_bias=False),
    Mlp(shape="plain", module="ffn", width=lambda c: 4 * c.hidden),
    norms=("norm_1", "norm_2"),
    norm_bias=False,
    stack="blocks",
    final_norm="norm_f",
)
OPT = Opt(
    mixers={FULL: Attention(bias="enable_bias", out_bias="enable_bias", out="out_proj", kv_heads=all_heads)},
    feeds={"dense": Mlp(shape="plain", module="mlp", up="fc1", down="fc2", bias="enable_bias")},
    norms=(),
    layer_more=opt_norms,
    head_width=opt_embedding,
    module="model.decoder",
    more=opt_more,
)
PERSIMMON = Decoder(
    mixers={FULL: JoinedAttention(module="self_attn", joined="query_key_value", out="dense")},
    feeds={"dense": plain("mlp", "dense_h_to_4h", "dense_4h_to_h")},
    norm_bias=True,
    final_norm="final_layernorm",
    layer_more=persimmon_norms,
)
QWEN = gpt(
    JoinedAttention(module="attn", joined="c_attn", out="c_proj", out_bias=False),
    Mlp(module="mlp", width=qwen_width),
    norm_bias=False,
)
CHATGLM = Decoder(
    mixers={FULL: ChatGlmAttention()},
    feeds={"dense": ChatGlmMlp()},
    module="transformer",
    stack="encoder.layers",
    embedding="embedding.word_embeddings",
    final_norm="encoder.final_layernorm",
    head="",
    more=chatglm_more,
)

FAMILIES: dict[str, Family] = {
    "gpt2": GPT2,
    "gpt_bigcode": GPT2,
    "gpt_neo": gpt(
        Attention(module="attn.attention", out="out_proj", out_bias=True, kv_heads=all_heads), GPT2_MLP, more=positions
    ),
    "gptj": GPTJ,
    "codegen": replace(GPTJ, mixers={FULL: replace(GPTJ.mixers[FULL], fused=True)}),  # type: ignore[type-var]
    "phi": PHI,
    "gpt_neox": NEOX,
    "falcon": FALCON,
    "bloom": BLOOM,
    "mpt": MPT,
    "opt": OPT,
    "persimmon": PERSIMMON,
    "qwen": QWEN,
    "chatglm": CHATGLM,
}
