"""Linear layers and activations of an MLP. Runs in a child process: torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from hfbench.convert.walls.shards import Part

Trace = Callable[[str, torch.Tensor], None]
"""Told the name of a tensor of the checkpoint and what came out of the module it belongs to."""


def untraced(name: str, value: torch.Tensor) -> None:
    """Nobody listens."""


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


def dense(
    part: Part, prefix: str, activation: str, *, gated: bool, biased: bool = False
) -> Callable[[torch.Tensor, Trace], torch.Tensor]:
    """An MLP of two linear layers, the first one's rows being gate and up where it is gated."""
    act = ACTIVATIONS[activation]
    second = part.columns(f"{prefix}linear_fc2.weight")
    second_bias = part.whole(f"{prefix}linear_fc2.bias") if biased else None
    if gated:
        gate, up = part.halves(f"{prefix}linear_fc1.weight")
        gate_bias, up_bias = part.halves(f"{prefix}linear_fc1.bias") if biased else (None, None)
    else:
        gate = up = part.rows(f"{prefix}linear_fc1.weight")
        gate_bias = up_bias = part.rows(f"{prefix}linear_fc1.bias") if biased else None

    def feed(x: torch.Tensor, trace: Trace) -> torch.Tensor:
        inner = functional.linear(x, gate, gate_bias)
        trace(f"{prefix}linear_fc1 {'gate' if gated else 'rows'}", inner)
        inner = act(inner)
        if gated:
            lifted = functional.linear(x, up, up_bias)
            trace(f"{prefix}linear_fc1 up", lifted)
            inner = inner * lifted
        out = functional.linear(inner, second, second_bias)
        trace(f"{prefix}linear_fc2.weight", out)
        return out

    return feed
