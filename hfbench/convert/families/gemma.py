"""Gemma 1, 2 and 3: norms around one, a gated GELU, and from the second on norms behind each block."""

from typing import Any

from hfbench.convert.families.rows import (
    ATTENTION,
    DECODER,
    DECODER_KEYS,
    EMBEDDING,
    FINAL_NORM,
    GATED_MLP,
    HEAD,
    HF,
    MLP_NORM,
    QK_NORM,
    USUAL_DROPS,
)
from hfbench.convert.families.table import LAYER, Args, Family, Row
from hfbench.convert.families.transforms import AS_IS
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings
from hfbench.models.problem import quoted

NORMS_BEHIND = (
    Row(
        LAYER + "self_attention.linear_proj.post_layernorm.weight",
        (HF + "post_attention_layernorm.weight",),
        AS_IS,
        "hidden",
    ),
    Row(LAYER + "mlp.linear_fc1.layer_norm_weight", (HF + "pre_feedforward_layernorm.weight",), AS_IS, "hidden"),
    Row(LAYER + "mlp.linear_fc2.post_layernorm.weight", (HF + "post_feedforward_layernorm.weight",), AS_IS, "hidden"),
)
"""Named as in Megatron-Bridge: megatron-core itself has no norms behind a block."""

COPIED = (
    "norm weights are copied as they are: Megatron adds the one itself (--apply-layernorm-1p)",
    "weights only: Megatron-LM has no argument for Gemma's gated GELU and scaled embedding; load it with a Gemma model "
    "of Megatron-Bridge",
)
BEHIND = "norms behind attention and feed-forward are named as in Megatron-Bridge; megatron-core's own GPT has none"


def _arguments(settings: Settings, args: Args) -> None:
    if settings.flag("attention_bias"):
        raise UsageError("attention has biases, on its output too: Megatron has them there only with those of the MLP")
    if settings.get("use_bidirectional_attention"):
        raise UsageError("attention looks both ways, which Megatron's GPT does not")
    args["embedding_scale"] = float(args["hidden_size"]) ** 0.5


def _arguments_since_2(settings: Settings, args: Args) -> None:
    _arguments(settings, args)
    args.update(
        post_norms=True,
        softmax_scale=float(settings.size("query_pre_attn_scalar")) ** -0.5,
        window_size=[settings.size("sliding_window") - 1, 0],
        window_attn_skip_freq=[int(kind == "sliding_attention") for kind in _layer_types(settings)],
        attn_logit_softcapping=settings.get("attn_logit_softcapping"),
        final_logit_softcapping=settings.get("final_logit_softcapping"),
    )
    if settings.kind == "gemma3_text":
        args["rotary_base_local"] = _local_base(settings)


def _layer_types(settings: Settings) -> list[str]:
    """The kind of each layer: as listed, else every second, or sixth, sees everything."""
    listed = settings.sequence("layer_types")
    if listed:
        if len(listed) != settings.layers:
            raise UsageError(f"layer_types lists {len(listed)} of {settings.layers} layers")
        return [str(each) for each in listed]
    every = _every(settings)
    return ["full_attention" if not (layer + 1) % every else "sliding_attention" for layer in range(settings.layers)]


def _every(settings: Settings) -> int:
    """Of so many layers, the last sees everything."""
    told = settings.raw.get("sliding_window_pattern") or (6 if settings.kind == "gemma3_text" else 2)
    if type(told) is not int or told < 1:
        raise UsageError(f"sliding_window_pattern is {quoted(told)}, a number of layers is needed")
    return told


def _local_base(settings: Settings) -> float:
    rope = settings.raw.get("rope_parameters")
    local = rope.get("sliding_attention") if isinstance(rope, dict) else None
    told = local.get("rope_theta") if isinstance(local, dict) else settings.raw.get("rope_local_base_freq")
    return float(told or 10000.0)


def _config(args: Args, config: dict[str, Any]) -> None:
    windows = args["window_attn_skip_freq"]
    config.update(
        query_pre_attn_scalar=round(args["softmax_scale"] ** -2),
        sliding_window=args["window_size"][0] + 1,
        layer_types=["sliding_attention" if each else "full_attention" for each in windows],
        attn_logit_softcapping=args.get("attn_logit_softcapping"),
        final_logit_softcapping=args.get("final_logit_softcapping"),
    )
    if args.get("rotary_base_local"):
        config["rope_local_base_freq"] = args["rotary_base_local"]


FIXED = {
    **DECODER,
    "swiglu": False,
    "gated_linear_unit": True,
    "activation_func": "gelu_tanh",
    "apply_layernorm_1p": True,
}
"""Where Megatron-LM has no argument, the names are those of megatron-core's configuration."""
SINCE_2 = {**FIXED, "post_norms": True}

GEMMA = Family(
    name="gemma",
    model_types=("gemma",),
    architecture="GemmaForCausalLM",
    rows=(EMBEDDING, *ATTENTION, MLP_NORM, *GATED_MLP, FINAL_NORM, HEAD),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed=FIXED,
    constants={"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"},
    arguments=_arguments,
    notes=COPIED,
)

GEMMA2 = Family(
    name="gemma2",
    model_types=("gemma2",),
    architecture="Gemma2ForCausalLM",
    rows=(EMBEDDING, *ATTENTION, *NORMS_BEHIND, *GATED_MLP, FINAL_NORM, HEAD),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed=SINCE_2,
    constants={"hidden_activation": "gelu_pytorch_tanh"},
    arguments=_arguments_since_2,
    config=_config,
    notes=(*COPIED, BEHIND),
)

GEMMA3 = Family(
    name="gemma3_text",
    model_types=("gemma3_text",),
    architecture="Gemma3ForCausalLM",
    rows=(EMBEDDING, *ATTENTION, *QK_NORM, *NORMS_BEHIND, *GATED_MLP, FINAL_NORM, HEAD),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={**SINCE_2, "qk_layernorm": True},
    constants={"hidden_activation": "gelu_pytorch_tanh"},
    arguments=_arguments_since_2,
    config=_config,
    notes=(*COPIED, BEHIND),
)
