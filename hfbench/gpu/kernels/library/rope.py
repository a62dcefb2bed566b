"""Rotary position embedding: each pair (a, b) of a head becomes (a cos - b sin, b cos + a sin), by its token's angle.

T = tokens, H = heads, D = head size, ROT = rotated elements of a head (even; what follows them is copied), P = rows of
the cos/sin tables, each ROT/2 wide, chosen by the token's position. Two ways to pair elements are in use:

  halves       i with i + ROT/2: GPT-NeoX, Llama and Qwen in transformers (`rotate_half`), `is_neox_style=True` in vLLM
  interleaved  2i with 2i + 1: RoFormer (arXiv:2104.09864), GPT-J, GLM, Cohere, Llama as Meta released it

An angle of 90 degrees turns [1, 2, 3, 4] into [-3, -4, 1, 2] by halves and into [-2, 1, -4, 3] interleaved. Queries and
keys are launched one after the other, for they seldom have as many heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor

BASE = 10000.0


@triton.jit
def rope_kernel(
    x, y, cos, sin, positions, x_token, x_head, y_token, y_head, table_stride, heads, head_size, rotated, interleaved,
    HALF: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    there = head < heads
    source, target = x + token * x_token + head * x_head, y + token * y_token + head * y_head
    half = rotated // 2
    turn = tl.arange(0, HALF)
    position = tl.load(positions + token)
    c = tl.load(cos + position * table_stride + turn, mask=turn < half, other=0.0)[None, :]
    s = tl.load(sin + position * table_stride + turn, mask=turn < half, other=0.0)[None, :]
    if interleaved:
        # neighbours are read as they lie and taken apart in registers: half a pair at a time would be two strided reads
        place = tl.arange(0, 2 * HALF)
        both = there[:, None] & (place < rotated)[None, :]
        values = tl.load(source[:, None] + place[None, :], mask=both, other=0.0).to(tl.float32)
        even, odd = tl.split(tl.reshape(values, (HEADS, HALF, 2)))
        turned = tl.reshape(tl.join(even * c - odd * s, odd * c + even * s), (HEADS, 2 * HALF))
        tl.store(target[:, None] + place[None, :], turned.to(y.dtype.element_ty), mask=both)
    else:
        inside = there[:, None] & (turn < half)[None, :]
        first = tl.load(source[:, None] + turn[None, :], mask=inside, other=0.0).to(tl.float32)
        second = tl.load(source[:, None] + half + turn[None, :], mask=inside, other=0.0).to(tl.float32)
        tl.store(target[:, None] + turn[None, :], (first * c - second * s).to(y.dtype.element_ty), mask=inside)
        tl.store(target[:, None] + half + turn[None, :], (second * c + first * s).to(y.dtype.element_ty), mask=inside)
    for begin in range(rotated, head_size, HALF):
        left = there[:, None] & (begin + turn < head_size)[None, :]
        rest = tl.load(source[:, None] + begin + turn[None, :], mask=left)
        tl.store(target[:, None] + begin + turn[None, :], rest, mask=left)


def inputs(case: Case) -> dict[str, Any]:
    """Positions in no order, as in a batch of several sequences; `pad` heads lie between two tokens of x, as in qkv."""
    import torch

    tokens, heads, rotated, rows = case["T"], case["H"], case["ROT"], 2 * case["T"] + 3
    x = case.normal(tokens, heads + case.shape.get("pad", 0), case["D"])[:, :heads]
    powers = torch.arange(0, rotated, 2, device=case.device, dtype=torch.float64) / rotated
    angles = torch.arange(rows, device=case.device, dtype=torch.float64)[:, None] * BASE**-powers
    return {
        "x": x,
        "cos": angles.cos().float(),
        "sin": angles.sin().float(),
        "positions": case.integers(0, rows, tokens, dtype="i64"),
        "interleaved": case["I"],
    }


def arguments(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: int) -> dict[str, Any]:
    y = x.new_empty(x.shape)
    return {
        "x": x,
        "y": y,
        "cos": cos,
        "sin": sin,
        "positions": positions,
        "interleaved": interleaved,
        "x_token": x.stride(0),
        "x_head": x.stride(1),
        "y_token": y.stride(0),
        "y_head": y.stride(1),
        "table_stride": cos.stride(0),
        "heads": x.shape[1],
        "head_size": x.shape[2],
        "rotated": 2 * cos.shape[1],
    }


def reference(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: int) -> Tensor:
    return _rotated(x.double(), cos.double(), sin.double(), positions, interleaved)


def eager(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: int) -> Tensor:
    return _rotated(x, cos.to(x.dtype), sin.to(x.dtype), positions, interleaved)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: int) -> Tensor:
    import torch

    c, s, half = cos[positions][:, None], sin[positions][:, None], cos.shape[1]
    turning, rest = x[..., : 2 * half], x[..., 2 * half :]
    pairs = turning.unflatten(-1, (half, 2)) if interleaved else turning.unflatten(-1, (2, half)).transpose(-1, -2)
    first, second = pairs.unbind(-1)
    turned = torch.stack((first * c - second * s, second * c + first * s), dim=-1 if interleaved else -2)
    return torch.cat((turned.flatten(-2), rest), dim=-1)


def config(half: int, heads: int, warps: int) -> Config:
    return Config(constants={"HALF": half, "HEADS": heads}, num_warps=warps)


KERNEL = Kernel(
    name="rope",
    fn=rope_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    eager=eager,
    grid=lambda given, constants: (given["x"].shape[0], triton.cdiv(given["heads"], constants["HEADS"])),
    signature={
        **dict.fromkeys(("x", "y"), "*T:16"),
        **dict.fromkeys(("cos", "sin"), "*fp32:16"),
        "positions": "*i64:16",
        **dict.fromkeys(("x_token", "x_head", "y_token", "y_head", "table_stride"), "i32:16"),
        **dict.fromkeys(("heads", "interleaved"), "i32"),
        **dict.fromkeys(("head_size", "rotated"), "i32:16"),
    },
    configs=(config(32, 16, 4), config(64, 8, 4), config(64, 32, 4), config(64, 32, 8), config(128, 16, 8)),
    applies=lambda given, constants: given["rotated"] <= 2 * constants["HALF"],
    shapes=tuple(
        {"I": style, **shape}
        for style in (0, 1)
        for shape in (
            {"T": 1, "H": 1, "D": 2, "ROT": 2},
            {"T": 0, "H": 4, "D": 64, "ROT": 64},
            {"T": 5, "H": 9, "D": 64, "ROT": 64, "pad": 6},  # SmolLM2-135M: 9 heads, beside keys and values of 3 each
            {"T": 3, "H": 5, "D": 80, "ROT": 20},  # GPT-NeoX and StableLM: a quarter of the head
            {"T": 2, "H": 17, "D": 96, "ROT": 96},
            {"T": 2, "H": 3, "D": 128, "ROT": 64},  # GLM-4: half of the head
        )
    ),
    sizes=tuple({"T": tokens, "H": 32, "D": 128, "ROT": 128, "I": style} for style in (0, 1) for tokens in (1, 8192)),
    # y is rounded once from fp32, or cut off as the interpreter does. The two products may cancel: what is left is as
    # wrong as they are, some 1e-7 of numbers up to 5
    tolerance={"fp16": Tolerance(2**-10, 2e-6), "bf16": Tolerance(2**-7, 2e-6), "fp32": Tolerance(1e-6, 2e-6)},
    bytes_moved=lambda case: case["T"] * (2 * case["H"] * case["D"] * case.itemsize + 4 * case["ROT"] + 8),
    flops=lambda case: 3 * case["T"] * case["H"] * case["ROT"],
)
