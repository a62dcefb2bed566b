"""Qwen 3: norms on the heads of query and key, no biases."""

from hfbench.convert.families.qwen2 import refuse_window
from hfbench.convert.families.rows import DECODER, DECODER_KEYS, DENSE, QK_NORM, USUAL_DROPS
from hfbench.convert.families.table import Args, Family
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def refuse_biases(settings: Settings, args: Args) -> None:
    """UsageError for biases on attention alone, and for a window in some of the layers."""
    refuse_window(settings, args)
    if settings.flag("attention_bias"):
        raise UsageError("attention has biases, on its output too: Megatron has them there only with those of the MLP")


QWEN3 = Family(
    name="qwen3",
    model_types=("qwen3",),
    architecture="Qwen3ForCausalLM",
    rows=(*DENSE, *QK_NORM),
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={**DECODER, "qk_layernorm": True},
    constants={"hidden_act": "silu", "attention_bias": False, "use_sliding_window": False},
    arguments=refuse_biases,
)
