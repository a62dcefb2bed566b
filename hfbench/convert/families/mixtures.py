"""Arguments that mixtures of experts share, and their way back to config.json."""

from __future__ import annotations

from typing import Any

from hfbench.convert.families.table import Args
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings


def tell_experts(settings: Settings, args: Args, *, width: int, pre_softmax: bool, dense: frozenset[int]) -> None:
    """Set what a router with top-k experts needs.

    `pre_softmax` is for weights that are not brought to a sum of one: a softmax over the chosen experts alone is the
    same as one over all of them that is divided by its sum. `dense` are the layers without experts.
    """
    layers = args["num_layers"]
    args.update(
        num_experts=settings.size("experts"),
        moe_ffn_hidden_size=width,
        moe_router_topk=settings.size("num_experts_per_tok"),
        moe_router_pre_softmax=pre_softmax,
        moe_router_score_function="softmax",
        moe_router_load_balancing_type="aux_loss",
        moe_aux_loss_coeff=float(settings.get("router_aux_loss_coef") or 0.0),
        moe_layer_freq=[int(layer not in dense) for layer in range(layers)] if dense else 1,
    )
    if args["moe_router_topk"] > args["num_experts"]:
        told = f"{args['moe_router_topk']} experts a token of {args['num_experts']}"
        raise UsageError(f"the configuration asks for {told}")


def layers_without_experts(settings: Settings) -> frozenset[int]:
    """The dense layers of Qwen's mixtures: those listed, and those between every k-th."""
    step = settings.number("decoder_sparse_step", default=1)
    listed = settings.numbers("mlp_only_layers")
    return frozenset(
        layer for layer in range(settings.layers) if layer in listed or (step and (layer + 1) % step) or not step
    )


def dense_layers(args: Args) -> list[int]:
    """The layers without experts, from Megatron's arguments."""
    frequency: Any = args.get("moe_layer_freq", 1)
    if isinstance(frequency, list):
        return [layer for layer, each in enumerate(frequency) if not each]
    return [layer for layer in range(args["num_layers"]) if layer % (frequency or 1)]
