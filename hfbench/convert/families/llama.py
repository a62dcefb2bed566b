"""Llama 2 and 3, and models that are told apart from it by their configuration alone."""

from hfbench.convert.families.rows import DECODER, DECODER_KEYS, DENSE, USUAL_DROPS
from hfbench.convert.families.table import Args, Family
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    biases = settings.flag("attention_bias"), settings.flag("mlp_bias")
    if biases[0] != biases[1]:
        told = "attention has biases and the feed-forward has none" if biases[0] else "only the feed-forward has biases"
        raise UsageError(f"{told}: Megatron has them on both or on neither")
    args.update(add_bias_linear=biases[0], add_qkv_bias=biases[0])


def _config(args: Args, config: dict[str, object]) -> None:
    config.update(attention_bias=bool(args.get("add_bias_linear")), mlp_bias=bool(args.get("add_bias_linear")))


LLAMA = Family(
    name="llama",
    model_types=("llama",),
    architecture="LlamaForCausalLM",
    rows=DENSE,
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed={key: value for key, value in DECODER.items() if key not in ("add_bias_linear", "add_qkv_bias")},
    constants={"hidden_act": "silu"},
    arguments=_arguments,
    config=_config,
)
