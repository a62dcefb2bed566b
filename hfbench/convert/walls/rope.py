"""Rotary positions as Megatron makes them from its arguments. Runs in a child process: torch."""

from __future__ import annotations

import math

import torch

from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.errors import HfbenchError

LLAMA3_ORIGINAL, LLAMA3_LOW, LLAMA3_HIGH = 8192, 1.0, 4.0
"""Megatron's own constants: only the factor can be chosen."""


class Rope:
    """Turns queries and keys by their positions; `local` takes the base that windowed layers have of their own."""

    def __init__(self, args: MegatronArgs, *, local: bool = False) -> None:
        self.scale = 1.0
        self._interleaved = bool(args.get("rotary_interleaved", False))
        self._pairs = args.mla
        base = float(args.get("rotary_base_local" if local else "rotary_base", 10000))
        channels = int(args.get("qk_pos_emb_head_dim", 64)) if args.mla else args.head_dim
        self.dim = int(channels * float(args.get("rotary_percent", 1.0)))
        frequencies = 1.0 / (base ** (torch.arange(0, self.dim, 2, dtype=torch.float32) / self.dim))
        kind = args.get("rope_type", "yarn") if args.mla else args.get("position_embedding_type", "learned_absolute")
        if kind == "yarn":
            frequencies, self.scale = yarn(frequencies, args, base, self.dim)
        elif kind != "rope":
            raise HfbenchError(f"position_embedding_type {kind} turns nothing")
        if args.get("use_rope_scaling", False) and not local:
            frequencies = llama3(frequencies, float(args.get("rope_scaling_factor", 8.0)))
        if (stretch := args.get("rotary_seq_len_interpolation_factor")) and not local:
            frequencies = frequencies / float(stretch)
        self.frequencies = frequencies

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, heads, channels] with the first `dim` channels turned by the place of each token."""
        turn, rest = x[..., : self.dim], x[..., self.dim :]
        if self._pairs:  # multi-latent attention keeps pairs side by side in its weights
            turn = torch.cat((turn[..., 0::2], turn[..., 1::2]), -1)
        angles = torch.outer(torch.arange(x.shape[0], dtype=torch.float32), self.frequencies)[:, None]
        if self._interleaved:
            angles = angles.repeat_interleave(2, -1)
            half = torch.stack((-turn[..., 1::2], turn[..., 0::2]), -1).flatten(-2)
        else:
            angles = torch.cat((angles, angles), -1)
            low, high = turn.chunk(2, -1)
            half = torch.cat((-high, low), -1)
        return torch.cat((turn * (angles.cos() * self.scale) + half * (angles.sin() * self.scale), rest), -1)


def llama3(frequencies: torch.Tensor, factor: float) -> torch.Tensor:
    """Low frequencies divided by the factor, high ones kept, those between blended."""
    length = 2 * math.pi / frequencies
    smooth = (LLAMA3_ORIGINAL / length - LLAMA3_LOW) / (LLAMA3_HIGH - LLAMA3_LOW)
    blended = (1 - smooth) * frequencies / factor + smooth * frequencies
    low, high = LLAMA3_ORIGINAL / LLAMA3_LOW, LLAMA3_ORIGINAL / LLAMA3_HIGH
    return torch.where(length > low, frequencies / factor, torch.where(length < high, frequencies, blended))


def yarn(frequencies: torch.Tensor, args: MegatronArgs, base: float, dim: int) -> tuple[torch.Tensor, float]:
    """YaRN's blend of stretched and plain frequencies, and the factor on cosine and sine (arXiv 2309.00071)."""

    def mine(name: str, default: float) -> float:
        return float(args.get(name if args.mla else f"yarn_{name}", default))

    factor, original = (
        mine("rotary_scaling_factor", 40 if args.mla else 1),
        mine("original_max_position_embeddings", 4096),
    )

    def turns_at(turns: float) -> float:
        return (dim * math.log(original / (turns * 2 * math.pi))) / (2 * math.log(base))

    low = max(math.floor(turns_at(mine("beta_fast", 32))), 0)
    high = min(math.ceil(turns_at(mine("beta_slow", 1))), dim - 1)
    ramp = ((torch.arange(dim // 2, dtype=torch.float32) - low) / max(high - low, 0.001)).clamp(0, 1)
    blended = frequencies / factor * ramp + frequencies * (1 - ramp)
    mscale, all_dim = mine("mscale", 1), mine("mscale_all_dim", 0)
    return blended, magnitude(factor, mscale) / magnitude(factor, all_dim)


def magnitude(factor: float, mscale: float) -> float:
    """YaRN's attention magnitude: 0.1 m ln(s) + 1, and 1 where nothing is stretched."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0
