"""The arguments of a Megatron checkpoint as Megatron would understand them, its defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.errors import UsageError

NEEDED = ("num_layers", "hidden_size", "num_attention_heads", "padded_vocab_size")
"""Without these nothing can be laid out."""


@dataclass(frozen=True)
class MegatronArgs:
    """Reads `args` of a checkpoint; `args[name]` is what was stored, or Megatron's default for it."""

    stored: Mapping[str, Any]

    def __post_init__(self) -> None:
        """UsageError when an argument without which Megatron builds no model is missing."""
        lacking = [name for name in NEEDED if not isinstance(self.stored.get(name), int)]
        if lacking:
            found = f"the checkpoint's args lack {', '.join(lacking)}"
            raise UsageError(found, remedy="write them into args: Megatron builds its model from them")

    def get(self, name: str, default: Any = None) -> Any:
        """The stored value; the default where there is none or it is None, as Megatron's parser leaves it."""
        value = self.stored.get(name)
        return default if value is None else value

    @property
    def layers(self) -> int:
        """Transformer layers in all."""
        return int(self.stored["num_layers"])

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return int(self.stored["hidden_size"])

    @property
    def heads(self) -> int:
        """Query heads."""
        return int(self.stored["num_attention_heads"])

    @property
    def groups(self) -> int:
        """Query groups: heads of keys and values."""
        return int(self.get("num_query_groups", self.heads)) if self.get("group_query_attention", False) else self.heads

    @property
    def head_dim(self) -> int:
        """Channels of a head."""
        return int(self.get("kv_channels", self.hidden // self.heads))

    @property
    def tp(self) -> int:
        """Ranks of tensor parallelism."""
        return int(self.get("tensor_model_parallel_size", 1))

    @property
    def pp(self) -> int:
        """Stages of pipeline parallelism."""
        return int(self.get("pipeline_model_parallel_size", 1))

    @property
    def ep(self) -> int:
        """Ranks of expert parallelism."""
        return int(self.get("expert_model_parallel_size", 1))

    @property
    def tied(self) -> bool:
        """Whether the output layer is the embedding."""
        return not self.get("untie_embeddings_and_output_weights", False)

    @property
    def gated(self) -> bool:
        """Whether the MLP multiplies by a gate."""
        return bool(self.get("swiglu", False) or self.get("gated_linear_unit", False))

    @property
    def activation(self) -> str:
        """`silu`, `gelu` or `gelu_tanh`."""
        if named := self.get("activation_func"):
            return str(named)
        if self.get("openai_gelu", False):
            return "gelu_tanh"
        return "silu" if self.get("swiglu", False) else "gelu"

    @property
    def mla(self) -> bool:
        """Whether attention is multi-latent."""
        return bool(self.get("multi_latent_attention", False))

    def has_experts(self, layer: int) -> bool:
        """Whether a layer (counted from 0 over all stages) has experts, by `moe_layer_freq`."""
        if not self.get("num_experts"):
            return False
        freq = self.get("moe_layer_freq", 1)
        if isinstance(freq, str):  # as it is typed: "([0]*1+[1]*26)"
            raise UsageError(f"moe_layer_freq is the text {freq!r}", remedy="write it as a list of 0 and 1")
        return bool(freq[layer]) if isinstance(freq, Sequence) else layer % int(freq) == 0

    def windowed(self, layer: int) -> int | None:
        """Keys a query of this layer sees, itself included; None for all of them."""
        window, skip = self.get("window_size"), self.get("window_attn_skip_freq")
        if window is None:
            return None
        seen = int(window[0]) + 1 if isinstance(window, Sequence) else int(window)
        if seen <= 0:
            return None
        if isinstance(skip, Sequence):
            return seen if skip[layer] else None
        return None if skip and (layer + 1) % int(skip) == 0 else seen

    def stages(self) -> list[tuple[int, int]]:
        """First layer and the one behind the last, of each pipeline stage.

        With 5 layers, 3 stages and `decoder_first_pipeline_num_layers` 1 they are (0, 1), (1, 3), (3, 5). UsageError
        when what is left does not divide.
        """
        counts: list[int | None] = [None] * self.pp
        if self.pp > 1:
            counts[0] = self.get("decoder_first_pipeline_num_layers")
            counts[-1] = self.get("decoder_last_pipeline_num_layers", counts[-1])
        rest = self.layers - sum(each or 0 for each in counts)
        open_stages = sum(each is None for each in counts)
        if rest < 0 or (rest % open_stages if open_stages else rest):
            raise UsageError(f"{self.layers} layers do not divide into {self.pp} pipeline stages as args say")
        ends, begin = [], 0
        for each in counts:
            end = begin + (rest // open_stages if each is None else int(each))
            ends.append((begin, end))
            begin = end
        return ends
