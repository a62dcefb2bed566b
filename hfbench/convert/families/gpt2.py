"""GPT-2: learned positions, biases everywhere, and linear layers that lie the other way round."""

from hfbench.convert.families.numbers import fraction
from hfbench.convert.families.table import LAYER, Args, Drop, Family, Row
from hfbench.convert.families.transforms import AS_IS, PAD_VOCAB, REGROUP_QKV, REGROUP_QKV_TRANSPOSED, TRANSPOSED
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings

BASE = "transformer."
HF = BASE + "h.{n}."
ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")


def _arguments(settings: Settings, args: Args) -> None:
    for name in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if settings.flag(name):
            raise UsageError(f"{name} is set, which Megatron's arguments do not know")
    activation = settings.get("activation_function")
    if activation not in (*ACTIVATIONS, "gelu"):
        raise UsageError(f"the activation {activation!r} is not one of Megatron's for GPT-2")
    args.update(
        ffn_hidden_size=settings.number("n_inner", default=4 * settings.hidden),
        openai_gelu=activation in ACTIVATIONS,
        hidden_dropout=fraction(settings.get("resid_pdrop"), "resid_pdrop"),
    )


def _config(args: Args, config: dict[str, object]) -> None:
    inner = args["ffn_hidden_size"]
    config.update(
        n_inner=None if inner == 4 * args["hidden_size"] else inner,
        activation_function="gelu_new" if args.get("openai_gelu") else "gelu",
        resid_pdrop=args.get("hidden_dropout", 0.0),
        embd_pdrop=args.get("hidden_dropout", 0.0),
    )


def _pair(target: str, source: str, when: str = "") -> tuple[Row, Row]:
    """Weight and bias of a norm."""
    return (
        Row(f"{target}weight", (source + ".weight",), AS_IS, "hidden", when=when),
        Row(f"{target}bias", (source + ".bias",), AS_IS, "hidden", when=when),
    )


GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    architecture="GPT2LMHeadModel",
    rows=(
        Row("embedding.word_embeddings.weight", (BASE + "wte.weight",), PAD_VOCAB, "padded_vocab hidden", "rows"),
        Row("embedding.position_embeddings.weight", (BASE + "wpe.weight",), AS_IS, "positions hidden"),
        *_pair(LAYER + "self_attention.linear_qkv.layer_norm_", HF + "ln_1"),
        Row(
            LAYER + "self_attention.linear_qkv.weight",
            (HF + "attn.c_attn.weight",),
            REGROUP_QKV_TRANSPOSED,
            "qkv_rows hidden",
            "rows",
        ),
        Row(LAYER + "self_attention.linear_qkv.bias", (HF + "attn.c_attn.bias",), REGROUP_QKV, "qkv_rows", "rows"),
        Row(
            LAYER + "self_attention.linear_proj.weight",
            (HF + "attn.c_proj.weight",),
            TRANSPOSED,
            "hidden q_rows",
            "columns",
        ),
        Row(LAYER + "self_attention.linear_proj.bias", (HF + "attn.c_proj.bias",), AS_IS, "hidden"),
        *_pair(LAYER + "mlp.linear_fc1.layer_norm_", HF + "ln_2"),
        Row(LAYER + "mlp.linear_fc1.weight", (HF + "mlp.c_fc.weight",), TRANSPOSED, "ffn hidden", "rows"),
        Row(LAYER + "mlp.linear_fc1.bias", (HF + "mlp.c_fc.bias",), AS_IS, "ffn", "rows"),
        Row(LAYER + "mlp.linear_fc2.weight", (HF + "mlp.c_proj.weight",), TRANSPOSED, "hidden ffn", "columns"),
        Row(LAYER + "mlp.linear_fc2.bias", (HF + "mlp.c_proj.bias",), AS_IS, "hidden"),
        *_pair("decoder.final_layernorm.", BASE + "ln_f"),
        Row(
            "output_layer.weight",
            ("lm_head.weight",),
            PAD_VOCAB,
            "padded_vocab hidden",
            "rows",
            when="untie_embeddings_and_output_weights",
        ),
    ),
    drops=(
        Drop(BASE + "h.{n}.attn.bias", "the causal mask, which Megatron makes itself"),
        Drop(BASE + "h.{n}.attn.masked_bias", "a constant of the causal mask"),
        Drop("lm_head.weight", "tied to the embedding", same_as=BASE + "wte.weight"),
    ),
    keys=(
        ("num_layers", "n_layer"),
        ("hidden_size", "n_embd"),
        ("num_attention_heads", "n_head"),
        ("max_position_embeddings", "n_positions"),
        ("norm_epsilon", "layer_norm_epsilon"),
        ("attention_dropout", "attn_pdrop"),
    ),
    fixed={
        "normalization": "LayerNorm",
        "swiglu": False,
        "position_embedding_type": "learned_absolute",
        "add_bias_linear": True,
        "add_qkv_bias": True,
        "qk_layernorm": False,
        "apply_layernorm_1p": False,
        "multi_latent_attention": False,
        "num_experts": None,
    },
    arguments=_arguments,
    config=_config,
    prefix=BASE,
)
