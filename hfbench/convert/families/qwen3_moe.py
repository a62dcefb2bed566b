"""Qwen 3 MoE: norms on the heads of query and key, experts without a shared one."""

from hfbench.convert.families.mixtures import dense_layers, layers_without_experts, tell_experts
from hfbench.convert.families.qwen3 import refuse_biases
from hfbench.convert.families.rows import DECODER, DECODER_KEYS, DENSE, QK_NORM, USUAL_DROPS, experts
from hfbench.convert.families.table import Args, Family
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    refuse_biases(settings, args)
    tell_experts(
        settings,
        args,
        width=settings.size("moe_intermediate_size"),
        pre_softmax=not settings.flag("norm_topk_prob"),
        dense=layers_without_experts(settings),
    )


def _config(args: Args, config: dict[str, object]) -> None:
    config.update(
        num_experts=args["num_experts"],
        num_experts_per_tok=args["moe_router_topk"],
        moe_intermediate_size=args["moe_ffn_hidden_size"],
        norm_topk_prob=not args.get("moe_router_pre_softmax", False),
        decoder_sparse_step=1,
        mlp_only_layers=dense_layers(args),
    )


QWEN3_MOE = Family(
    name="qwen3_moe",
    model_types=("qwen3_moe",),
    architecture="Qwen3MoeForCausalLM",
    rows=(*DENSE, *QK_NORM, *experts("mlp")),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={**{key: value for key, value in DECODER.items() if key != "num_experts"}, "qk_layernorm": True},
    constants={"hidden_act": "silu", "attention_bias": False, "use_sliding_window": False},
    arguments=_arguments,
    config=_config,
)
