"""Rows that families share: attention, feed-forward, experts, norms and embeddings in the names most of them use."""

from __future__ import annotations

from hfbench.convert.families.table import LAYER, Drop, Row
from hfbench.convert.families.transforms import AS_IS, FUSE_QKV, GATE_UP, GATE_UP_JOINED, PAD_VOCAB

HF = "model.layers.{n}."

EMBEDDING = Row(
    "embedding.word_embeddings.weight", ("model.embed_tokens.weight",), PAD_VOCAB, "padded_vocab hidden", "rows"
)
FINAL_NORM = Row("decoder.final_layernorm.weight", ("model.norm.weight",), AS_IS, "hidden")
HEAD = Row(
    "output_layer.weight",
    ("lm_head.weight",),
    PAD_VOCAB,
    "padded_vocab hidden",
    "rows",
    when="untie_embeddings_and_output_weights",
)

ATTENTION_NORM = Row(
    LAYER + "self_attention.linear_qkv.layer_norm_weight", (HF + "input_layernorm.weight",), AS_IS, "hidden"
)
QKV = Row(
    LAYER + "self_attention.linear_qkv.weight",
    tuple(f"{HF}self_attn.{each}_proj.weight" for each in "qkv"),
    FUSE_QKV,
    "qkv_rows hidden",
    "rows",
)
QKV_BIAS = Row(
    LAYER + "self_attention.linear_qkv.bias",
    tuple(f"{HF}self_attn.{each}_proj.bias" for each in "qkv"),
    FUSE_QKV,
    "qkv_rows",
    "rows",
    when="add_qkv_bias",
)
ATTENTION_OUT = Row(
    LAYER + "self_attention.linear_proj.weight", (HF + "self_attn.o_proj.weight",), AS_IS, "hidden q_rows", "columns"
)
ATTENTION_OUT_BIAS = Row(
    LAYER + "self_attention.linear_proj.bias", (HF + "self_attn.o_proj.bias",), AS_IS, "hidden", when="add_bias_linear"
)
ATTENTION = (ATTENTION_NORM, QKV, QKV_BIAS, ATTENTION_OUT, ATTENTION_OUT_BIAS)

QK_NORM = tuple(
    Row(
        f"{LAYER}self_attention.{each}_layernorm.weight",
        (f"{HF}self_attn.{each}_norm.weight",),
        AS_IS,
        "head_dim",
        when="qk_layernorm",
    )
    for each in "qk"
)

MLP_NORM = Row(
    LAYER + "mlp.linear_fc1.layer_norm_weight",
    (HF + "post_attention_layernorm.weight",),
    AS_IS,
    "hidden",
    when="dense",
)
GATED_MLP = (
    Row(
        LAYER + "mlp.linear_fc1.weight",
        (HF + "mlp.gate_proj.weight", HF + "mlp.up_proj.weight"),
        GATE_UP,
        "gate_up hidden",
        "halves",
        when="dense",
    ),
    Row(
        LAYER + "mlp.linear_fc1.bias",
        (HF + "mlp.gate_proj.bias", HF + "mlp.up_proj.bias"),
        GATE_UP,
        "gate_up",
        "halves",
        when="dense add_bias_linear",
    ),
    Row(LAYER + "mlp.linear_fc2.weight", (HF + "mlp.down_proj.weight",), AS_IS, "hidden ffn", "columns", when="dense"),
    Row(LAYER + "mlp.linear_fc2.bias", (HF + "mlp.down_proj.bias",), AS_IS, "hidden", when="dense add_bias_linear"),
)

EXPERT_NORM = Row(
    LAYER + "pre_mlp_layernorm.weight", (HF + "post_attention_layernorm.weight",), AS_IS, "hidden", when="moe"
)


def experts(block: str, gate: str = "gate_proj", up: str = "up_proj", down: str = "down_proj") -> tuple[Row, ...]:
    """Router and experts in a block of a layer; on disk each expert stands alone, or all of them in two tensors."""
    inside = f"{HF}{block}."
    fc1, fc2 = LAYER + "mlp.experts.linear_fc1.weight{e}", LAYER + "mlp.experts.linear_fc2.weight{e}"
    one, every = inside + "experts.{e}.", f"{HF}mlp.experts."
    sizes1, sizes2 = "expert_gate_up hidden", "hidden expert_ffn"
    return (
        EXPERT_NORM,
        Row(LAYER + "mlp.router.weight", (inside + "gate.weight",), AS_IS, "experts hidden", when="moe"),
        Row(fc1, (f"{one}{gate}.weight", f"{one}{up}.weight"), GATE_UP, sizes1, "halves", when="moe"),
        Row(fc1, (every + "gate_up_proj",), GATE_UP_JOINED, sizes1, "halves", when="moe", all_experts=True),
        Row(fc2, (f"{one}{down}.weight",), AS_IS, sizes2, "columns", when="moe"),
        Row(fc2, (every + "down_proj",), AS_IS, sizes2, "columns", when="moe", all_experts=True),
    )


def shared_expert(block: str) -> tuple[Row, ...]:
    """The expert that every token passes."""
    inside = f"{HF}mlp.{block}."
    return (
        Row(
            LAYER + "mlp.shared_experts.linear_fc1.weight",
            (inside + "gate_proj.weight", inside + "up_proj.weight"),
            GATE_UP,
            "shared_gate_up hidden",
            "halves",
            when="moe moe_shared_expert_intermediate_size",
        ),
        Row(
            LAYER + "mlp.shared_experts.linear_fc2.weight",
            (inside + "down_proj.weight",),
            AS_IS,
            "hidden shared_ffn",
            "columns",
            when="moe moe_shared_expert_intermediate_size",
        ),
    )


DENSE = (EMBEDDING, *ATTENTION, MLP_NORM, *GATED_MLP, FINAL_NORM, HEAD)
"""A decoder with RMSNorm, rotary positions and a gated feed-forward."""

INVERSE_FREQUENCIES = Drop("*rotary_emb.inv_freq", "worked out from the rotary base")
TIED_HEAD = Drop("lm_head.weight", "tied to the embedding", same_as="model.embed_tokens.weight")
USUAL_DROPS = (INVERSE_FREQUENCIES, TIED_HEAD)

DECODER_KEYS = (
    ("num_layers", "num_hidden_layers"),
    ("hidden_size", "hidden_size"),
    ("ffn_hidden_size", "intermediate_size"),
    ("num_attention_heads", "num_attention_heads"),
    ("num_query_groups", "num_key_value_heads"),
    ("kv_channels", "head_dim"),
    ("max_position_embeddings", "max_position_embeddings"),
    ("norm_epsilon", "rms_norm_eps"),
    ("attention_dropout", "attention_dropout"),
)
"""Arguments and keys of such a decoder; num_query_groups and kv_channels follow from the others where not given."""

DECODER = {
    "normalization": "RMSNorm",
    "swiglu": True,
    "position_embedding_type": "rope",
    "add_bias_linear": False,
    "add_qkv_bias": False,
    "qk_layernorm": False,
    "apply_layernorm_1p": False,
    "multi_latent_attention": False,
    "num_experts": None,
}
"""Arguments of such a decoder."""
