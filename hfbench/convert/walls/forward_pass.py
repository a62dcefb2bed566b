"""A Megatron GPT model run from its shards, a layer's weights at a time, in float32. Runs in a child process: torch.

Written from what Megatron does with its arguments and files, so that it does not share a converter's mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch.nn import functional

from hfbench.convert.walls.experts import mixed
from hfbench.convert.walls.linear import Trace, dense, untraced
from hfbench.convert.walls.rope import Rope, magnitude
from hfbench.convert.walls.shards import Part, Shards


class MegatronModel:
    """Hidden states and logits of token sequences. Memory is one layer in float32 beside what is mapped."""

    def __init__(self, shards: Shards) -> None:
        self.shards, self.args = shards, shards.args
        learned = self.args.get("position_embedding_type", "learned_absolute") == "learned_absolute"
        self._rope = None if learned and not self.args.mla else Rope(self.args)
        self._local = Rope(self.args, local=True) if self.args.get("rotary_base_local") else self._rope

    def embedded(self, sequences: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """[tokens, hidden] of each sequence before the first layer."""
        part = self.shards.first()
        words = part.rows("embedding.word_embeddings.weight")
        states = [words[each] * float(self.args.get("embedding_scale", 1.0)) for each in sequences]
        if self._rope is None:
            places = part.whole("embedding.position_embeddings.weight")
            states = [state + places[: state.shape[0]] for state in states]
        return states

    def layer(self, number: int, states: Sequence[torch.Tensor], trace: Trace = untraced) -> list[torch.Tensor]:
        """The states behind a layer, counted from 0 over all stages; a trace follows the first sequence only."""
        part = self.shards.layer(number)
        attend = self._latent(part, number) if self.args.mla else self._grouped(part, number)
        states = [
            state
            + self._after(part, "self_attention.linear_proj", attend(self._norm(part, "input_layernorm", state, t), t))
            for state, t in zip(states, (trace, *[untraced] * len(states)), strict=False)
        ]
        feed = self._mlp(part, number)
        return [
            state + self._after(part, "mlp.linear_fc2", feed(self._norm(part, "pre_mlp_layernorm", state, t), t))
            for state, t in zip(states, (trace, *[untraced] * len(states)), strict=False)
        ]

    def head(self, states: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        """[tokens, padded vocabulary] of each sequence: the final norm and the output layer."""
        part = self.shards.last()
        if part.has("output_layer.weight"):
            words = part.rows("output_layer.weight")
        else:
            words = self.shards.first().rows("embedding.word_embeddings.weight")
        for each in states:
            logits = functional.linear(self._norm(part, "decoder.final_layernorm", each), words)
            yield capped(logits, self.args.get("final_logit_softcapping"))

    def logits(
        self, sequences: Sequence[torch.Tensor], each: Callable[[int, int], None] = lambda done, total: None
    ) -> Iterator[torch.Tensor]:
        """The logits of each sequence, [tokens, padded vocabulary]; `each` is told how many layers are done."""
        states = self.embedded(sequences)
        for number in range(self.args.layers):
            states = self.layer(number, states)
            each(number + 1, self.args.layers)
        yield from self.head(states)

    def _norm(self, part: Part, name: str, x: torch.Tensor, trace: Trace = untraced) -> torch.Tensor:
        weight = part.whole(f"{name}.weight")
        if self.args.get("apply_layernorm_1p", False):
            weight = weight + 1
        epsilon = float(self.args.get("norm_epsilon", 1e-5))
        if self.args.get("normalization", "LayerNorm") == "RMSNorm":
            out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight
        else:
            bias = part.whole(f"{name}.bias") if part.has(f"{name}.bias") else None
            out = functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon)
        trace(f"{name}.weight", out)
        return out

    def _after(self, part: Part, module: str, x: torch.Tensor) -> torch.Tensor:
        """The norm behind attention or MLP that Gemma 2 and 3 have."""
        name = f"{module}.post_layernorm"
        return self._norm(part, name, x) if part.has(f"{name}.weight") else x

    def _grouped(self, part: Part, number: int) -> Callable[[torch.Tensor, Trace], torch.Tensor]:
        """Attention with query groups: rows of linear_qkv are, group by group, its queries, its key and its value."""
        args = self.args
        groups, per, channels = args.groups, args.heads // args.groups, args.head_dim
        weight = part.rows("self_attention.linear_qkv.weight")
        bias = (
            part.rows("self_attention.linear_qkv.bias")
            if args.get("add_bias_linear", True) or args.get("add_qkv_bias", False)
            else None
        )
        proj = part.columns("self_attention.linear_proj.weight")
        proj_bias = part.whole("self_attention.linear_proj.bias") if args.get("add_bias_linear", True) else None
        window = args.windowed(number)
        rope = self._local if window and args.get("rotary_base_local") else self._rope
        scale = float(args.get("softmax_scale", 1 / math.sqrt(channels)))

        def attend(x: torch.Tensor, trace: Trace) -> torch.Tensor:
            mixed_rows = functional.linear(x, weight, bias).view(x.shape[0], groups, per + 2, channels)
            q, k, v = mixed_rows.split((per, 1, 1), 2)
            q, k, v = q.flatten(1, 2), k.squeeze(2), v.squeeze(2)
            for name, value in (("query", q), ("key", k), ("value", v)):
                trace(f"self_attention.linear_qkv {name}", value.flatten(1))
            if args.get("qk_layernorm", False):
                q = self._norm(part, "self_attention.q_layernorm", q)
                k = self._norm(part, "self_attention.k_layernorm", k)
            if rope is not None:
                q, k = rope.turned(q), rope.turned(k)
            k, v = k.repeat_interleave(per, 1), v.repeat_interleave(per, 1)
            out = attention(q, k, v, scale, window, args.get("attn_logit_softcapping"))
            trace("core_attention", out)
            out = functional.linear(out, proj, proj_bias)
            trace("self_attention.linear_proj.weight", out)
            return out

        return attend

    def _latent(self, part: Part, number: int) -> Callable[[torch.Tensor, Trace], torch.Tensor]:
        """Multi-latent attention: queries and keys of a plain and a turned part, keys and values from one latent."""
        args, rope = self.args, self._rope
        assert rope is not None
        plain, turned, values = (int(args.get(each)) for each in ("qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"))
        latent = int(args.get("kv_lora_rank"))
        factor = float(args.get("rotary_scaling_factor", 40))
        scale = magnitude(factor, float(args.get("mscale_all_dim", 0.0))) ** 2 / math.sqrt(plain + turned)
        attention_part = "self_attention."
        down = part.whole(f"{attention_part}linear_kv_down_proj.weight")
        up = part.rows(f"{attention_part}linear_kv_up_proj.weight")
        proj = part.columns(f"{attention_part}linear_proj.weight")
        proj_bias = part.whole(f"{attention_part}linear_proj.bias") if args.get("add_bias_linear", True) else None

        def attend(x: torch.Tensor, trace: Trace) -> torch.Tensor:
            tokens = x.shape[0]
            if args.get("q_lora_rank"):
                low = functional.linear(x, part.whole(f"{attention_part}linear_q_down_proj.weight"))
                trace("self_attention.linear_q_down_proj.weight", low)
                low = self._norm(part, "self_attention.q_layernorm", low)
                q = functional.linear(low, part.rows(f"{attention_part}linear_q_up_proj.weight"))
                trace("self_attention.linear_q_up_proj.weight", q)
            else:
                q = functional.linear(x, part.rows(f"{attention_part}linear_q_proj.weight"))
                trace("self_attention.linear_q_proj.weight", q)
            q_plain, q_turned = q.view(tokens, args.heads, plain + turned).split((plain, turned), -1)
            low = functional.linear(x, down)
            trace("self_attention.linear_kv_down_proj.weight", low)
            kv, k_turned = low.split((latent, turned), -1)
            both = functional.linear(self._norm(part, "self_attention.kv_layernorm", kv), up)
            trace("self_attention.linear_kv_up_proj.weight", both)
            k_plain, v = both.view(tokens, args.heads, plain + values).split((plain, values), -1)
            k_turned = rope.turned(k_turned[:, None]).expand(-1, args.heads, -1)
            q = torch.cat((q_plain, rope.turned(q_turned)), -1)
            out = attention(q, torch.cat((k_plain, k_turned), -1), v, scale, args.windowed(number), None)
            trace("core_attention", out)
            out = functional.linear(out, proj, proj_bias)
            trace("self_attention.linear_proj.weight", out)
            return out

        return attend

    def _mlp(self, part: Part, number: int) -> Callable[[torch.Tensor, Trace], torch.Tensor]:
        if self.args.has_experts(number):
            return mixed(part, self.args)
        return dense(
            part, "mlp.", self.args.activation, gated=self.args.gated, biased=self.args.get("add_bias_linear", True)
        )


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, window: int | None, cap: float | None
) -> torch.Tensor:
    """Causal attention of [tokens, heads, channels], the heads side by side in what comes out."""
    scores = capped(torch.einsum("qhc,khc->hqk", q, k) * scale, cap)
    places = torch.arange(q.shape[0])
    ago = places[:, None] - places[None]
    hidden = (ago < 0) | (ago >= window) if window else ago < 0
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("hqk,khc->qhc", weights, v).flatten(1)


def capped(x: torch.Tensor, cap: float | None) -> torch.Tensor:
    """Gemma 2's soft limit on logits."""
    return torch.tanh(x / float(cap)) * float(cap) if cap else x
