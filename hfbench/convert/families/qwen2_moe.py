"""Qwen 2 MoE: biases as in Qwen 2, and a shared expert behind a gate."""

from hfbench.convert.families.mixtures import dense_layers, layers_without_experts, tell_experts
from hfbench.convert.families.qwen2 import refuse_window
from hfbench.convert.families.rows import (
    DECODER,
    DECODER_KEYS,
    DENSE,
    HF,
    USUAL_DROPS,
    experts,
    shared_expert,
)
from hfbench.convert.families.table import LAYER, Args, Family, Row
from hfbench.convert.families.transforms import AS_IS
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    refuse_window(settings, args)
    args["add_qkv_bias"] = settings.flag("qkv_bias", True)
    tell_experts(
        settings,
        args,
        width=settings.size("moe_intermediate_size"),
        pre_softmax=not settings.flag("norm_topk_prob"),
        dense=layers_without_experts(settings),
    )
    args.update(
        moe_shared_expert_intermediate_size=settings.size("shared_expert_intermediate_size"),
        moe_shared_expert_gate=True,
    )
    if settings.get("layer_types") and any(each != "full_attention" for each in settings.sequence("layer_types")):
        raise UsageError("layer_types lists other kinds than full_attention, which Megatron's arguments do not know")


def _config(args: Args, config: dict[str, object]) -> None:
    config.update(
        num_experts=args["num_experts"],
        num_experts_per_tok=args["moe_router_topk"],
        moe_intermediate_size=args["moe_ffn_hidden_size"],
        shared_expert_intermediate_size=args["moe_shared_expert_intermediate_size"],
        norm_topk_prob=not args.get("moe_router_pre_softmax", False),
        decoder_sparse_step=1,
        mlp_only_layers=dense_layers(args),
        qkv_bias=bool(args.get("add_qkv_bias")),
    )


QWEN2_MOE = Family(
    name="qwen2_moe",
    model_types=("qwen2_moe",),
    architecture="Qwen2MoeForCausalLM",
    rows=(
        *DENSE,
        *experts("mlp"),
        *shared_expert("shared_expert"),
        Row(
            LAYER + "mlp.shared_experts.gate_weight",
            (HF + "mlp.shared_expert_gate.weight",),
            AS_IS,
            "one hidden",
            when="moe",
        ),
    ),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={
        **{key: value for key, value in DECODER.items() if key not in ("num_experts", "add_qkv_bias")},
        "moe_shared_expert_gate": True,
    },
    constants={"hidden_act": "silu", "use_sliding_window": False},
    arguments=_arguments,
    config=_config,
)
