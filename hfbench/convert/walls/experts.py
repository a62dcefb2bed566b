"""Mixtures of experts as Megatron routes them. Runs in a child process: torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from hfbench.convert.walls.linear import ACTIVATIONS, Trace, dense, untraced
from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.convert.walls.shards import Part
from hfbench.errors import HfbenchError


def mixed(part: Part, args: MegatronArgs) -> Callable[[torch.Tensor, Trace], torch.Tensor]:
    """The MLP of a layer with experts, and the shared expert beside them where there is one."""
    router = part.whole("mlp.router.weight")
    bias = part.whole("mlp.router.expert_bias") if args.get("moe_router_enable_expert_bias", False) else None
    shared = None
    if args.get("moe_shared_expert_intermediate_size"):
        shared = dense(part, "mlp.shared_experts.", args.activation, gated=args.gated)
    gate = part.whole("mlp.shared_experts.gate_weight") if args.get("moe_shared_expert_gate", False) else None

    def feed(x: torch.Tensor, trace: Trace) -> torch.Tensor:
        logits = functional.linear(x, router)
        trace("mlp.router.weight", logits)
        weights, chosen = routed(logits, args, bias)
        out = torch.zeros_like(x)
        for number in chosen.unique().tolist():
            token, place = torch.where(chosen == number)
            out.index_add_(0, token, expert(part, number, x[token], args) * weights[token, place, None])
        if shared is not None:
            beside = shared(x, untraced)
            out = out + (beside * torch.sigmoid(functional.linear(x, gate)) if gate is not None else beside)
        trace("mlp.experts", out)
        return out

    return feed


def expert(part: Part, number: int, x: torch.Tensor, args: MegatronArgs) -> torch.Tensor:
    """What one expert makes of the tokens it was given; its weights are read for that."""
    one = part.expert(number)
    gate, up = one.halves("linear_fc1.weight")
    inner = ACTIVATIONS[args.activation](functional.linear(x, gate)) * functional.linear(x, up)
    return functional.linear(inner, one.columns("linear_fc2.weight"))


def routed(logits: torch.Tensor, args: MegatronArgs, bias: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and numbers of the experts of each token, [tokens, top k] both."""
    top = int(args.get("moe_router_topk", 2))
    kind = args.get("moe_router_score_function", "softmax")
    if kind == "softmax" and args.get("moe_router_pre_softmax", False):
        scores = logits.softmax(-1)
        chosen = best(scores, top, args)
        weights = scores.gather(1, chosen)
    elif kind == "softmax":
        chosen = best(logits, top, args)
        weights = logits.gather(1, chosen).softmax(-1)
    elif kind == "sigmoid":
        scores = logits.sigmoid()
        chosen = best(scores if bias is None else scores + bias, top, args)
        weights = scores.gather(1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) if top > 1 else weights
    else:
        raise HfbenchError(f"moe_router_score_function {kind} is not known")
    return weights * float(args.get("moe_router_topk_scaling_factor", 1.0)), chosen


def best(scores: torch.Tensor, top: int, args: MegatronArgs) -> torch.Tensor:
    """Numbers of the highest scores; by groups, within those whose best scores add up to most."""
    kept = args.get("moe_router_group_topk")
    if not kept:
        return scores.topk(top, -1).indices
    groups = int(args.get("moe_router_num_groups"))
    by_group = scores.view(scores.shape[0], groups, -1)
    sums = by_group.topk(top // int(kept), -1).values.sum(-1)
    open_groups = torch.zeros_like(sums, dtype=torch.bool).scatter_(1, sums.topk(int(kept), -1).indices, True)
    return by_group.masked_fill(~open_groups[..., None], float("-inf")).flatten(1).topk(top, -1).indices
