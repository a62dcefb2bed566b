"""Mistral: Llama's layers, in some versions with a sliding window."""

from hfbench.convert.families.rows import DECODER, DECODER_KEYS, DENSE, USUAL_DROPS
from hfbench.convert.families.table import Args, Family
from hfbench.estimate.settings import Settings


def _arguments(settings: Settings, args: Args) -> None:
    if window := settings.optional("sliding_window"):
        args["window_size"] = [window - 1, 0]


def _config(args: Args, config: dict[str, object]) -> None:
    window = args.get("window_size")
    config["sliding_window"] = window[0] + 1 if window else None


MISTRAL = Family(
    name="mistral",
    model_types=("mistral",),
    architecture="MistralForCausalLM",
    rows=DENSE,
    drops=USUAL_DROPS,
    keys=DECODER_KEYS,
    fixed=DECODER,
    constants={"hidden_act": "silu"},
    arguments=_arguments,
    config=_config,
    told_by_arguments=False,
)
