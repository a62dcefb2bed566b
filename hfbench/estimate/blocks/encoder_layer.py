"""Layers of encoders that read images, sound or whole texts, and the heads and projectors between rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hfbench.estimate.parts import Parts, linear, norm, under


@dataclass(frozen=True, kw_only=True)
class EncoderLayer:
    """Full attention with as many key as query heads, and a feed-forward; sizes are given, not looked up."""

    hidden: int
    width: int
    attention: str = "self_attn"
    joined: str = ""
    """The name of one projection for queries, keys and values."""
    names: tuple[str, str, str] = ("q_proj", "k_proj", "v_proj")
    out: str = "out_proj"
    bias: bool = True
    key_bias: bool = True
    out_bias: bool = True
    mlp: str = "mlp"
    up: str = "fc1"
    down: str = "fc2"
    shape: Literal["plain", "gated"] = "plain"
    mlp_bias: bool = True
    norms: tuple[str, ...] = ("layer_norm1", "layer_norm2")
    norm_bias: bool = True

    def parts(self) -> Parts:
        """The tensors of one layer."""
        yield from under(self.attention, self._attention())
        yield from under(self.mlp, self._mlp()) if self.mlp else self._mlp()
        for name in self.norms:
            yield from norm(name, self.hidden, self.norm_bias)

    def _attention(self) -> Parts:
        if self.joined:
            yield from linear(self.joined, 3 * self.hidden, self.hidden, self.bias)
        else:
            queries, keys, values = self.names
            yield from linear(queries, self.hidden, self.hidden, self.bias)
            yield from linear(keys, self.hidden, self.hidden, self.bias and self.key_bias)
            yield from linear(values, self.hidden, self.hidden, self.bias)
        if self.out:
            yield from linear(self.out, self.hidden, self.hidden, self.bias and self.out_bias)

    def _mlp(self) -> Parts:
        if self.shape == "gated":
            yield from linear("gate_proj", self.width, self.hidden, self.mlp_bias)
        yield from linear(self.up, self.width, self.hidden, self.mlp_bias)
        yield from linear(self.down, self.hidden, self.width, self.mlp_bias)
