"""Phi 3: Llama's layers, with query, key and value in one tensor and gate and up in another."""

from hfbench.convert.families.rows import (
    ATTENTION_NORM,
    ATTENTION_OUT,
    DECODER,
    DECODER_KEYS,
    EMBEDDING,
    FINAL_NORM,
    GATED_MLP,
    HEAD,
    HF,
    MLP_NORM,
    USUAL_DROPS,
)
from hfbench.convert.families.table import LAYER, Args, Family, Row
from hfbench.convert.families.transforms import GATE_UP_JOINED, REGROUP_QKV
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    args["rotary_percent"] = settings.ratio("partial_rotary_factor", 1.0)
    if window := settings.get("sliding_window"):
        args["window_size"] = [window - 1, 0]


def _config(args: Args, config: dict[str, object]) -> None:
    window = args.get("window_size")
    config["sliding_window"] = window[0] + 1 if window else None
    if args.get("rotary_percent", 1.0) != 1.0:
        config["partial_rotary_factor"] = args["rotary_percent"]


PHI3 = Family(
    name="phi3",
    model_types=("phi3",),
    architecture="Phi3ForCausalLM",
    rows=(
        EMBEDDING,
        ATTENTION_NORM,
        Row(
            LAYER + "self_attention.linear_qkv.weight",
            (HF + "self_attn.qkv_proj.weight",),
            REGROUP_QKV,
            "qkv_rows hidden",
            "rows",
        ),
        ATTENTION_OUT,
        MLP_NORM,
        Row(
            LAYER + "mlp.linear_fc1.weight",
            (HF + "mlp.gate_up_proj.weight",),
            GATE_UP_JOINED,
            "gate_up hidden",
            "halves",
        ),
        GATED_MLP[2],
        FINAL_NORM,
        HEAD,
    ),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed=DECODER,
    constants={"hidden_act": "silu"},
    arguments=_arguments,
    config=_config,
    told_by_arguments=False,
)
