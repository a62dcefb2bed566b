"""Qwen 2 and 2.5: biases on query, key and value."""

from hfbench.convert.families.rows import DECODER, DECODER_KEYS, DENSE, USUAL_DROPS
from hfbench.convert.families.table import Args, Family
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def refuse_window(settings: Settings, _args: Args) -> None:
    """UsageError for a window that only some of the layers have."""
    if settings.flag("use_sliding_window"):
        raise UsageError("a sliding window in some of the layers has no counterpart in Megatron's arguments")


QWEN2 = Family(
    name="qwen2",
    model_types=("qwen2",),
    architecture="Qwen2ForCausalLM",
    rows=DENSE,
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={**DECODER, "add_qkv_bias": True},
    constants={"hidden_act": "silu", "use_sliding_window": False},
    arguments=refuse_window,
)
