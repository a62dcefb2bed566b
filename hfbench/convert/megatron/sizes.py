"""The numbers that decide every shape of a model, read from Megatron's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.estimate.settings import MOST_LAYERS
from hfbench.models.problem import quoted

MOST_EXPERTS = 100_000
"""Of all layers together; four times what the largest models have. Beyond it arguments are damaged or hostile."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of one model; those of what it lacks are 0. Rows of families name them, and the sums below, as shapes."""

    layers: int
    hidden: int
    heads: int
    groups: int
    """Key-value heads."""
    head_dim: int
    ffn: int
    vocab: int
    padded_vocab: int
    positions: int = 0
    experts: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    mtp: int = 0
    """Layers that predict further tokens, after all others."""
    latent: bool = False
    """True for multi-latent attention."""
    q_lora: int = 0
    kv_lora: int = 0
    nope_dim: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    moe_layers: frozenset[int] = frozenset()
    """The layers that have experts."""

    @property
    def one(self) -> int:
        """A dimension of one."""
        return 1

    @property
    def double_hidden(self) -> int:
        """Columns of a projection of two hidden states side by side."""
        return 2 * self.hidden

    @property
    def q_rows(self) -> int:
        """Rows of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Rows of the key projection, and of the value projection."""
        return self.groups * self.head_dim

    @property
    def qkv_rows(self) -> int:
        """Rows of the fused projection."""
        return self.q_rows + 2 * self.kv_rows

    @property
    def gate_up(self) -> int:
        """Rows of gate and up projection together."""
        return 2 * self.ffn

    @property
    def expert_gate_up(self) -> int:
        """The same of one expert."""
        return 2 * self.expert_ffn

    @property
    def shared_gate_up(self) -> int:
        """The same of the shared expert."""
        return 2 * self.shared_ffn

    @property
    def latent_q_rows(self) -> int:
        """Rows of the query projection of multi-latent attention."""
        return self.heads * (self.nope_dim + self.rope_dim)

    @property
    def latent_kv_down(self) -> int:
        """Rows of the projection down to the latent, with the rotated part of the keys."""
        return self.kv_lora + self.rope_dim

    @property
    def latent_kv_up(self) -> int:
        """Rows of the projection of the latent up to keys and values."""
        return self.heads * (self.nope_dim + self.value_dim)

    @property
    def latent_out(self) -> int:
        """Columns of the output projection of multi-latent attention."""
        return self.heads * self.value_dim

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """The sizes of these names."""
        return tuple(int(getattr(self, name)) for name in names)


def sizes_of(args: Mapping[str, Any]) -> Sizes:
    """The sizes in a checkpoint's arguments; HfbenchError names the one that is missing or no size."""
    layers, heads = _size(args, "num_layers", most=MOST_LAYERS), _size(args, "num_attention_heads")
    hidden = _size(args, "hidden_size")
    grouped = args.get("group_query_attention") and args.get("num_query_groups")
    padded = _size(args, "padded_vocab_size")
    latent = bool(args.get("multi_latent_attention"))
    experts = _size(args, "num_experts", 0)
    moe_layers = _moe_layers(args.get("moe_layer_freq"), layers) if experts else frozenset()
    if experts * len(moe_layers) > MOST_EXPERTS:
        raise HfbenchError(f"the argument num_experts is {experts:,} in each of {len(moe_layers):,} layers")
    return Sizes(
        layers=layers,
        hidden=hidden,
        heads=heads,
        groups=_size(args, "num_query_groups") if grouped else heads,
        head_dim=_size(args, "kv_channels", hidden // heads),
        ffn=_size(args, "ffn_hidden_size", 4 * hidden),
        vocab=_size(args, "vocab_size", padded),
        padded_vocab=padded,
        positions=_size(args, "max_position_embeddings", 0),
        experts=experts,
        expert_ffn=_size(args, "moe_ffn_hidden_size", _size(args, "ffn_hidden_size", 4 * hidden)) if experts else 0,
        shared_ffn=_size(args, "moe_shared_expert_intermediate_size", 0) if experts else 0,
        mtp=_size(args, "mtp_num_layers", 0, most=MOST_LAYERS),
        latent=latent,
        q_lora=_size(args, "q_lora_rank", 0) if latent else 0,
        kv_lora=_size(args, "kv_lora_rank") if latent else 0,
        nope_dim=_size(args, "qk_head_dim") if latent else 0,
        rope_dim=_size(args, "qk_pos_emb_head_dim") if latent else 0,
        value_dim=_size(args, "v_head_dim") if latent else 0,
        moe_layers=moe_layers,
    )


def padded_to(vocab: int, divisible_by: int, tp: int) -> int:
    """The vocabulary as Megatron pads it: to a multiple of `divisible_by` x TP."""
    step = divisible_by * tp
    return -(-vocab // step) * step


def _size(args: Mapping[str, Any], name: str, default: int | None = None, *, most: int = 2**40) -> int:
    value = args.get(name)
    if value is None and default is not None:
        return default
    if type(value) is not int or not 0 <= value <= most or (value == 0 and default != 0):
        raise HfbenchError(f"the argument {name} is {quoted(value)}, a size is needed")
    return value


def _moe_layers(frequency: object, layers: int) -> frozenset[int]:
    """Every layer that has experts: each k-th from the first on, or those marked in a list."""
    if frequency is None:
        return frozenset(range(layers))
    if isinstance(frequency, list) and len(frequency) == layers:
        return frozenset(place for place, each in enumerate(frequency) if each)
    if type(frequency) is int and frequency > 0:
        return frozenset(range(0, layers, frequency))
    raise HfbenchError(f"the argument moe_layer_freq is {quoted(frequency)}, which does not tell {layers} layers")
