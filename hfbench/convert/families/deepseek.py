"""DeepSeek V2 and V3: multi-latent attention, routed and shared experts, layers that predict further tokens."""

from hfbench.convert.families.mixtures import tell_experts
from hfbench.convert.families.rows import (
    DECODER,
    EMBEDDING,
    FINAL_NORM,
    GATED_MLP,
    HEAD,
    HF,
    MLP_NORM,
    USUAL_DROPS,
    experts,
    shared_expert,
)
from hfbench.convert.families.table import LAYER, Args, Drop, Family, Row
from hfbench.convert.families.transforms import AS_IS
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings

MTP = "mtp.layers.{j}."
"""How the tensors begin that only a layer predicting a further token has; the rest of it is a layer like any other."""

ATTENTION = LAYER + "self_attention."
LATENT_ATTENTION = (
    Row(LAYER + "input_layernorm.weight", (HF + "input_layernorm.weight",), AS_IS, "hidden"),
    Row(
        ATTENTION + "linear_q_down_proj.weight",
        (HF + "self_attn.q_a_proj.weight",),
        AS_IS,
        "q_lora hidden",
        when="q_lora_rank",
    ),
    Row(
        ATTENTION + "linear_q_up_proj.layer_norm_weight",
        (HF + "self_attn.q_a_layernorm.weight",),
        AS_IS,
        "q_lora",
        when="q_lora_rank",
    ),
    Row(
        ATTENTION + "linear_q_up_proj.weight",
        (HF + "self_attn.q_b_proj.weight",),
        AS_IS,
        "latent_q_rows q_lora",
        "rows",
        when="q_lora_rank",
    ),
    Row(
        ATTENTION + "linear_q_proj.weight",
        (HF + "self_attn.q_proj.weight",),
        AS_IS,
        "latent_q_rows hidden",
        "rows",
        when="not:q_lora_rank",
    ),
    Row(
        ATTENTION + "linear_kv_down_proj.weight",
        (HF + "self_attn.kv_a_proj_with_mqa.weight",),
        AS_IS,
        "latent_kv_down hidden",
    ),
    Row(
        ATTENTION + "linear_kv_up_proj.layer_norm_weight",
        (HF + "self_attn.kv_a_layernorm.weight",),
        AS_IS,
        "kv_lora",
    ),
    Row(
        ATTENTION + "linear_kv_up_proj.weight",
        (HF + "self_attn.kv_b_proj.weight",),
        AS_IS,
        "latent_kv_up kv_lora",
        "rows",
    ),
    Row(ATTENTION + "linear_proj.weight", (HF + "self_attn.o_proj.weight",), AS_IS, "hidden latent_out", "columns"),
)

EXPERT_BIAS = Row(
    LAYER + "mlp.router.expert_bias",
    (HF + "mlp.gate.e_score_correction_bias",),
    AS_IS,
    "experts",
    when="moe moe_router_enable_expert_bias",
    precise=True,
)

FURTHER = (
    Row(MTP + "enorm.weight", (HF + "enorm.weight",), AS_IS, "hidden"),
    Row(MTP + "hnorm.weight", (HF + "hnorm.weight",), AS_IS, "hidden"),
    Row(MTP + "eh_proj.weight", (HF + "eh_proj.weight",), AS_IS, "hidden double_hidden", "rows"),
    Row(MTP + "final_layernorm.weight", (HF + "shared_head.norm.weight",), AS_IS, "hidden"),
)
FURTHER_DROPS = (
    Drop(
        "model.layers.{n}.embed_tokens.weight",
        "Megatron uses the embedding",
        same_as="model.embed_tokens.weight",
        restored=True,
    ),
    Drop(
        "model.layers.{n}.shared_head.head.weight",
        "Megatron uses the output layer",
        same_as="lm_head.weight",
        restored=True,
    ),
)

ROWS = (
    EMBEDDING,
    *LATENT_ATTENTION,
    MLP_NORM,
    *GATED_MLP,
    *experts("mlp"),
    EXPERT_BIAS,
    *shared_expert("shared_experts"),
    FINAL_NORM,
    HEAD,
)

KEYS = (
    ("num_layers", "num_hidden_layers"),
    ("hidden_size", "hidden_size"),
    ("ffn_hidden_size", "intermediate_size"),
    ("num_attention_heads", "num_attention_heads"),
    ("max_position_embeddings", "max_position_embeddings"),
    ("norm_epsilon", "rms_norm_eps"),
    ("attention_dropout", "attention_dropout"),
    ("q_lora_rank", "q_lora_rank"),
    ("kv_lora_rank", "kv_lora_rank"),
    ("qk_head_dim", "qk_nope_head_dim"),
    ("qk_pos_emb_head_dim", "qk_rope_head_dim"),
    ("v_head_dim", "v_head_dim"),
    ("moe_router_topk_scaling_factor", "routed_scaling_factor"),
)


def _arguments(settings: Settings, args: Args) -> None:
    if settings.flag("attention_bias"):
        raise UsageError("attention has biases, which Megatron's multi-latent attention has not")
    dense = frozenset(range(min(settings.optional("first_k_dense_replace"), settings.layers)))
    width = settings.size("moe_intermediate_size")
    sums = settings.flag("norm_topk_prob")
    tell_experts(settings, args, width=width, pre_softmax=True, dense=dense)
    args.update(
        num_query_groups=args["num_attention_heads"],
        kv_channels=args["hidden_size"] // args["num_attention_heads"],
        moe_shared_expert_intermediate_size=settings.optional("n_shared_experts") * width or None,
        moe_shared_expert_gate=False,
        rope_type="rope",  # where nothing is said, multi-latent attention takes yarn
    )
    if groups := settings.optional("n_group"):
        args.update(moe_router_num_groups=groups, moe_router_group_topk=settings.size("topk_group"))
    if settings.kind == "deepseek_v3":
        args.update(moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True)
        if not sums:
            raise UsageError("norm_topk_prob is false: Megatron's sigmoid router always brings weights to a sum of one")
    elif sums:
        args["moe_router_pre_softmax"] = False
    if settings.kind == "deepseek_v2" and settings.get("topk_method") in (None, "greedy"):
        args.update(moe_router_num_groups=None, moe_router_group_topk=None)


def _config(args: Args, config: dict[str, object]) -> None:
    frequency = args.get("moe_layer_freq")
    width = args["moe_ffn_hidden_size"]
    config.update(
        num_key_value_heads=args["num_attention_heads"],
        moe_intermediate_size=width,
        n_routed_experts=args["num_experts"],
        n_shared_experts=(args.get("moe_shared_expert_intermediate_size") or 0) // width or None,
        num_experts_per_tok=args["moe_router_topk"],
        first_k_dense_replace=frequency.count(0) if isinstance(frequency, list) else 0,
        n_group=args.get("moe_router_num_groups"),
        topk_group=args.get("moe_router_group_topk"),
        norm_topk_prob=args.get("moe_router_score_function") == "sigmoid" or not args.get("moe_router_pre_softmax"),
        num_nextn_predict_layers=args.get("mtp_num_layers") or 0,
    )
    if args.get("moe_router_score_function") == "sigmoid":
        config.update(topk_method="noaux_tc", scoring_func="sigmoid")
    else:
        config.update(topk_method="group_limited_greedy" if args.get("moe_router_num_groups") else "greedy")


FIXED = {
    **{key: value for key, value in DECODER.items() if key not in ("num_experts",)},
    "multi_latent_attention": True,
    "qk_layernorm": True,
}
NOT_RUN = (
    "weights only: megatron-core does not build multi-latent attention without a GPU, so logits were never compared"
)

DEEPSEEK_V3 = Family(
    name="deepseek_v3",
    model_types=("deepseek_v3",),
    architecture="DeepseekV3ForCausalLM",
    rows=(*ROWS, *FURTHER),
    drops=(*USUAL_DROPS, *FURTHER_DROPS),
    keys=KEYS,
    fixed={**FIXED, "moe_router_enable_expert_bias": True},
    constants={"hidden_act": "silu", "attention_bias": False},
    arguments=_arguments,
    config=_config,
    notes=(NOT_RUN,),
)

DEEPSEEK_V2 = Family(
    name="deepseek_v2",
    model_types=("deepseek_v2",),
    architecture="DeepseekV2ForCausalLM",
    rows=ROWS,
    drops=USUAL_DROPS,
    keys=KEYS,
    fixed=FIXED,
    constants={"hidden_act": "silu", "attention_bias": False},
    arguments=_arguments,
    config=_config,
    notes=(
        NOT_RUN,
        "groups of experts are chosen by the sum of their best scores in Megatron, by the best one in DeepSeek V2",
    ),
)
