"""Mixtral: Mistral's attention, experts in every layer."""

from hfbench.convert.families.mixtures import tell_experts
from hfbench.convert.families.rows import (
    ATTENTION,
    DECODER,
    DECODER_KEYS,
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    HF,
    USUAL_DROPS,
    experts,
)
from hfbench.convert.families.table import LAYER, Args, Family, Row
from hfbench.convert.families.transforms import AS_IS
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    if settings.get("sliding_window"):
        args["window_size"] = [settings.size("sliding_window") - 1, 0]
    if settings.get("router_jitter_noise"):
        raise UsageError("router_jitter_noise is set, which Megatron's arguments do not know")
    tell_experts(settings, args, width=settings.width, pre_softmax=False, dense=frozenset())


def _config(args: Args, config: dict[str, object]) -> None:
    window = args.get("window_size")
    config.update(
        num_local_experts=args["num_experts"],
        num_experts_per_tok=args["moe_router_topk"],
        intermediate_size=args.get("moe_ffn_hidden_size") or args["ffn_hidden_size"],
        sliding_window=window[0] + 1 if window else None,
    )


MIXTRAL = Family(
    name="mixtral",
    model_types=("mixtral",),
    architecture="MixtralForCausalLM",
    rows=(
        EMBEDDING,
        *ATTENTION,
        *experts("block_sparse_moe", "w1", "w3", "w2"),
        Row(LAYER + "mlp.router.weight", (HF + "mlp.gate.weight",), AS_IS, "experts hidden", when="moe"),
        FINAL_NORM,
        HEAD,
    ),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={key: value for key, value in DECODER.items() if key != "num_experts"},
    constants={"hidden_act": "silu"},
    arguments=_arguments,
    config=_config,
)
