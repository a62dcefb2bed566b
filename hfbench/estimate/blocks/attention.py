"""Attention of heads: projections, norms on queries and keys, gates and sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.parts import Part, Parts, linear, norm, under, vector
from hfbench.estimate.settings import Settings

Switch = bool | str
"""Always, never, or by a flag of this name in the configuration."""

WINDOWED = ("sliding_attention", "chunked_attention")
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "sliding_window_size")


def on(switch: Switch, c: Settings) -> bool:
    """Whether a switch is on for this configuration."""
    return c.flag(switch) if isinstance(switch, str) else switch


def window_of(kind: str, c: Settings) -> int | None:
    """Tokens that a layer of this kind looks back, None for all; half as many where it looks ahead as well."""
    window = c.optional(*WINDOWS) if kind in WINDOWED else 0
    if c.get("use_bidirectional_attention") in (True, "all"):
        window = window and window // 2 + 1
    return window or None


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Grouped-query attention.

    `qk_norm` is over a head, over all heads at once, or as if the heads made up the hidden size.
    """

    module: str = "self_attn"
    bias: Switch = False
    out_bias: Switch = False
    fused: bool = False
    """One tensor makes queries, keys and values."""
    qk_norm: Literal["", "head", "all", "heads", "hidden"] = ""
    qk_norm_if: Switch = True
    norm_bias: bool = False
    gate: Switch = False
    """Queries come with a gate of the same size."""
    sinks: bool = False
    out: str = "o_proj"
    square_out: bool = False
    """The last projection is as wide as the residual stream, whatever the heads are."""
    head_dim: Callable[[Settings], int] = lambda c: c.head_dim
    kv_heads: Callable[[Settings], int] = lambda c: c.kv_heads

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under(self.module, self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """Keys and values of one layer."""
        return attention_cache(kind, self.kv_heads(c), self.head_dim(c), window_of(kind, c))

    def _inside(self, c: Settings) -> Parts:
        size, bias = self.head_dim(c), on(self.bias, c)
        queries, keys = c.heads * size, self.kv_heads(c) * size
        gated = 2 if on(self.gate, c) else 1
        if self.fused:
            yield from linear("qkv_proj", queries + 2 * keys, c.hidden, bias)
        else:
            yield from linear("q_proj", gated * queries, c.hidden, bias)
            yield from linear("k_proj", keys, c.hidden, bias)
            yield from linear("v_proj", keys, c.hidden, bias)
        yield from linear(self.out, c.hidden, c.hidden if self.square_out else queries, on(self.out_bias, c))
        if self.sinks:
            yield from vector("sinks", c.heads)
        if self.qk_norm and on(self.qk_norm_if, c):
            yield from self._norms(c, size)

    def _norms(self, c: Settings, size: int) -> Parts:
        if self.qk_norm == "heads":  # a weight for each head
            yield Part("q_norm.weight", (c.heads, size))
            yield Part("k_norm.weight", (self.kv_heads(c), size))
            return
        if self.qk_norm == "hidden":
            size = c.hidden // c.heads
        queries, keys = (1, 1) if self.qk_norm == "head" else (c.heads, self.kv_heads(c))
        yield from norm("q_norm", queries * size, self.norm_bias)
        yield from norm("k_norm", keys * size, self.norm_bias)
