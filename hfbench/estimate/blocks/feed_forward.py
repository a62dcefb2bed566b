"""Feed-forward modules: gated, plain, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hfbench.estimate.blocks.attention import Switch, on
from hfbench.estimate.parts import Part, Parts, linear, under
from hfbench.estimate.settings import Settings


def dense_width(c: Settings) -> int:
    """The inner width of the dense feed-forward."""
    return c.width


def moe_width(c: Settings) -> int:
    """The inner width of one expert."""
    return c.size("moe_intermediate_size", "intermediate_size")


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """Gate, up and down; gate and up in one tensor; or only up and down."""

    shape: Literal["gated", "fused", "plain"] = "gated"
    bias: Switch = False
    width: Callable[[Settings], int] = dense_width
    module: str = "mlp"
    up: str = "up_proj"
    down: str = "down_proj"

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under(self.module, self._inside(c))

    def _inside(self, c: Settings) -> Parts:
        width, bias = self.width(c), on(self.bias, c)
        if self.shape == "fused":
            yield from linear("gate_up_proj", 2 * width, c.hidden, bias)
        elif self.shape == "gated":
            yield from linear("gate_proj", width, c.hidden, bias)
        if self.shape != "fused":
            yield from linear(self.up, width, c.hidden, bias)
        yield from linear(self.down, c.hidden, width, bias)


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Routed experts, each gated unless `plain`, and perhaps one that sees every token.

    Experts are counted as one tensor for gate and up and one for down, as transformers 5 holds them; files store
    each by itself.
    """

    module: str = "mlp"
    router: str = "gate"
    router_bias: bool = False
    correction: Literal["", "router", "module"] = ""
    """Where a buffer that corrects the router's scores lives."""
    count: Callable[[Settings], int] = lambda c: c.size("experts")
    width: Callable[[Settings], int] = moe_width
    bias: bool = False
    plain: bool = False
    shared: str = ""
    shared_width: Callable[[Settings], int] = lambda c: 0
    shared_shape: Literal["gated", "fused", "plain"] = "gated"
    shared_bias: Switch = False
    shared_gate: bool = False

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under(self.module, self._inside(c))

    def _inside(self, c: Settings) -> Parts:
        count, width = self.count(c), self.width(c)
        yield from linear(self.router, count, c.hidden, self.router_bias)
        if self.correction:
            owner = f"{self.router}." if self.correction == "router" else ""
            yield Part(f"{owner}e_score_correction_bias", (count,), buffer=True)
        first = width if self.plain else 2 * width
        name = "up_proj" if self.plain else "gate_up_proj"
        yield Part(f"experts.{name}", (count, first, c.hidden))
        yield Part("experts.down_proj", (count, c.hidden, width))
        if self.bias:
            yield Part(f"experts.{name}_bias", (count, first))
            yield Part("experts.down_proj_bias", (count, c.hidden))
        if self.shared and self.shared_width(c):
            shape, bias = self.shared_shape, self.shared_bias
            yield from Mlp(module=self.shared, width=self.shared_width, shape=shape, bias=bias).parts(c)
            if self.shared_gate:
                yield from linear(f"{self.shared}_gate", 1, c.hidden)
