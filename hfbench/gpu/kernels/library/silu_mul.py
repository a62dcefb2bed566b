"""Gated activation of a feed-forward layer: y = gate * sigmoid(gate) * up, with x = [gate | up] in one tensor.

R = rows (tokens), C = columns of y (intermediate size); x has 2 C columns, the gate in the left half, as the merged
projections of vLLM (`SiluAndMul`) and of Phi-3 in transformers lay it: x of [[1, 2, 10, 100]] gives [[7.31, 176.2]].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def silu_mul_kernel(x, y, x_stride, y_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    gate = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * x_stride + columns + column, mask=inside, other=0.0).to(tl.float32)
    # exp(-gate) may be infinite, which gives the -0 that is right
    active = gate / (1.0 + tl.exp(-gate))
    tl.store(y + row * y_stride + column, (active * up).to(y.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """Gates of a wide spread, from where sigmoid is 0 to where it is 1; `pad` columns lie between two rows."""
    x = 4 * case.normal(case["R"], 2 * case["C"] + case.shape.get("pad", 0))[:, : 2 * case["C"]]
    x[:1, 0] = -200  # exp(200) is no number of fp32
    return {"x": x}


def arguments(x: Tensor) -> dict[str, Any]:
    y = x.new_empty((x.shape[0], x.shape[1] // 2))
    return {"x": x, "y": y, "x_stride": x.stride(0), "y_stride": y.stride(0), "columns": y.shape[1]}


def reference(x: Tensor) -> Tensor:
    gate, up = x.double().chunk(2, dim=1)
    return gate * gate.sigmoid() * up


def eager(x: Tensor) -> Tensor:
    from torch.nn.functional import silu

    gate, up = x.chunk(2, dim=1)
    return silu(gate) * up


KERNEL = Kernel(
    name="silu_mul",
    fn=silu_mul_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    eager=eager,
    grid=lambda given, constants: (given["x"].shape[0], triton.cdiv(given["columns"], constants["BLOCK"])),
    signature={"x": "*T:16", "y": "*T:16", "x_stride": "i32:16", "y_stride": "i32:16", "columns": "i32:16"},
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 8), (8192, 8))
    ),
    shapes=(
        {"R": 1, "C": 1},
        {"R": 0, "C": 64},
        {"R": 3, "C": 1536},
        {"R": 5, "C": 781, "pad": 3},
        {"R": 2, "C": 4864},  # Qwen2-0.5B
    ),
    sizes=tuple({"R": rows, "C": columns} for rows, columns in ((1, 14336), (4096, 8192), (4096, 14336))),
    # y is rounded once from fp32, or cut off as the interpreter does; fp32 loses a few units to exp and the division
    tolerance={"fp16": Tolerance(2**-10, 2**-24), "bf16": Tolerance(2**-7, 1e-30), "fp32": Tolerance(2e-6, 1e-30)},
    bytes_moved=lambda case: 3 * case["R"] * case["C"] * case.itemsize,
    flops=lambda case: 5 * case["R"] * case["C"],
)
