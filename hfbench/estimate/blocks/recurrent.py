"""Layers with a state of fixed size: gated delta rule, Mamba 1 and 2, short convolutions."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.estimate.blocks.attention import on
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.parts import Parts, conv, linear, norm, under, vector
from hfbench.estimate.settings import Settings


@dataclass(frozen=True, kw_only=True)
class DeltaNet:
    """Gated delta rule: a (value heads x key dim x value dim) state (Gated DeltaNet, arXiv:2412.06464)."""

    joined: bool = False
    """Two input projections (Qwen3-Next) instead of four (Qwen3.5)."""

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under("linear_attn", self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """The state, in 32 bit, and the last inputs of the convolution."""
        keys, values = _delta_sizes(c)
        state = c.size("linear_num_value_heads") * c.size("linear_key_head_dim") * c.size("linear_value_head_dim")
        return LayerCache(kind, state=(2 * keys + values) * c.size("linear_conv_kernel_dim"), state32=state)

    def _inside(self, c: Settings) -> Parts:
        keys, values = _delta_sizes(c)
        heads = c.size("linear_num_value_heads")
        yield from vector("dt_bias", heads)
        yield from vector("A_log", heads)
        yield from conv("conv1d", 2 * keys + values, 1, c.size("linear_conv_kernel_dim"))
        yield from norm("norm", c.size("linear_value_head_dim"))
        yield from linear("out_proj", c.hidden, values)
        if self.joined:
            yield from linear("in_proj_qkvz", 2 * keys + 2 * values, c.hidden)
            yield from linear("in_proj_ba", 2 * heads, c.hidden)
            return
        yield from linear("in_proj_qkv", 2 * keys + values, c.hidden)
        yield from linear("in_proj_z", values, c.hidden)
        yield from linear("in_proj_b", heads, c.hidden)
        yield from linear("in_proj_a", heads, c.hidden)


def _delta_sizes(c: Settings) -> tuple[int, int]:
    keys = c.size("linear_num_key_heads") * c.size("linear_key_head_dim")
    return keys, c.size("linear_num_value_heads") * c.size("linear_value_head_dim")


@dataclass(frozen=True, kw_only=True)
class KimiDelta:
    """Delta attention with a decay for each channel: a (heads x dim x dim) state (Kimi Linear, arXiv:2510.26692)."""

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under("self_attn", self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """The state, in 32 bit, and the last inputs of the convolution."""
        heads, size, kernel = self._sizes(c)
        return LayerCache(kind, state=3 * heads * size * kernel, state32=heads * size * size)

    def _sizes(self, c: Settings) -> tuple[int, int, int]:
        """Heads, elements of a head, and the kernel: in an object of their own, or by names of the class."""
        linear = c.section("linear_attn_config")
        return (
            linear.optional("num_heads") or c.size("linear_num_heads"),
            linear.optional("head_dim") or c.size("linear_head_dim"),
            linear.optional("short_conv_kernel_size") or c.size("linear_conv_kernel_dim"),
        )

    def _inside(self, c: Settings) -> Parts:
        heads, size, kernel = self._sizes(c)
        inner = heads * size
        for name in ("q_proj", "k_proj", "v_proj"):
            yield from linear(name, inner, c.hidden)
        yield from conv("conv1d", 3 * inner, 1, kernel)
        for name in ("forget_gate.f", "g"):
            yield from linear(f"{name}_a_proj", size, c.hidden)
            yield from linear(f"{name}_b_proj", inner, size)
        yield from vector("forget_gate.dt_bias", inner)
        yield from vector("forget_gate.A_log", 1, 1, heads, 1)
        yield from linear("b_proj", heads, c.hidden)
        yield from norm("o_norm", size)
        yield from linear("o_proj", c.hidden, inner)


@dataclass(frozen=True, kw_only=True)
class Mamba1:
    """Selective state space with a state for each channel (Mamba, arXiv:2312.00752). `normed` as in Jamba."""

    prefix: str = "mamba_"
    module: str = "mamba"
    normed: bool = False

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under(self.module, self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """The state, in 32 bit, and the last inputs of the convolution."""
        inner, states, kernel, _ = self._sizes(c)
        return LayerCache(kind, state=inner * kernel, state32=inner * states)

    def _sizes(self, c: Settings) -> tuple[int, int, int, int]:
        p = self.prefix
        inner = int(c.hidden * c.ratio(f"{p}expand", 2))
        inner = inner if p else c.size("intermediate_size", default=inner)
        rank = c.get(f"{p}dt_rank", "time_step_rank")
        steps = rank if type(rank) is int and rank > 0 else -(-c.hidden // 16)
        return inner, c.size(f"{p}d_state", "state_size"), c.size(f"{p}d_conv", "conv_kernel"), steps

    def _inside(self, c: Settings) -> Parts:
        inner, states, kernel, rank = self._sizes(c)
        bias = c.flag("mamba_proj_bias") if self.prefix else c.flag("use_bias")
        conv_bias = c.flag("mamba_conv_bias" if self.prefix else "use_conv_bias", True)
        yield from vector("A_log", inner, states)
        yield from vector("D", inner)
        yield from conv("conv1d", inner, 1, kernel, bias=conv_bias)
        yield from linear("in_proj", 2 * inner, c.hidden, bias)
        yield from linear("x_proj", rank + 2 * states, inner)
        yield from linear("dt_proj", inner, rank, True)
        yield from linear("out_proj", c.hidden, inner, bias)
        if self.normed:
            yield from norm("dt_layernorm", rank)
            yield from norm("b_layernorm", states)
            yield from norm("c_layernorm", states)


@dataclass(frozen=True, kw_only=True)
class Mamba2:
    """State space with heads (Mamba-2, arXiv:2405.21060); the sizes under the names a family gives them."""

    module: str = "mixer"
    heads: str = "mamba_num_heads"
    head_dim: str = "mamba_head_dim"
    groups: str = "n_groups"
    states: str = "ssm_state_size"
    kernel: str = "conv_kernel"
    bias: str = "mamba_proj_bias"
    conv_bias: str = "use_conv_bias"

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under(self.module, self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """heads x head dim x states, in 32 bit, and the last inputs of the convolution."""
        inner, mixed, _ = self._sizes(c)
        return LayerCache(kind, state=mixed * c.size(self.kernel), state32=inner * c.size(self.states))

    def _sizes(self, c: Settings) -> tuple[int, int, int]:
        heads = c.size(self.heads)
        inner = heads * c.size(self.head_dim)
        return inner, inner + 2 * c.size(self.groups) * c.size(self.states), heads

    def _inside(self, c: Settings) -> Parts:
        inner, mixed, heads = self._sizes(c)
        bias = on(self.bias, c)
        for name in ("dt_bias", "A_log", "D"):
            yield from vector(name, heads)
        yield from conv("conv1d", mixed, 1, c.size(self.kernel), bias=on(self.conv_bias, c))
        yield from linear("in_proj", inner + mixed + heads, c.hidden, bias)
        yield from norm("norm", inner)
        yield from linear("out_proj", c.hidden, inner, bias)


@dataclass(frozen=True, kw_only=True)
class ShortConv:
    """A gated convolution over a few tokens (LFM2)."""

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        bias = c.flag("conv_bias")
        inside = (
            *conv("conv", c.hidden, 1, c.size("conv_L_cache"), bias=bias),
            *linear("in_proj", 3 * c.hidden, c.hidden, bias),
            *linear("out_proj", c.hidden, c.hidden, bias),
        )
        return under("conv", inside)

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """The last inputs of the convolution."""
        return LayerCache(kind, state=c.hidden * c.size("conv_L_cache"))
