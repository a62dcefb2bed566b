"""Softmax of each row: y = exp(x - max(x)) / sum(exp(x - max(x))).

R = rows, C = columns. One program holds one row whole, which therefore fits one block:
x of [[0, 0]] gives [[0.5, 0.5]], and [[1000, 1000]] the same, since the largest value is taken off first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def softmax_kernel(x, y, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * stride + column, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * stride + column, (powers / tl.sum(powers, axis=0)).to(y.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """Logits of a wide spread, so that the largest must be taken off before exp."""
    return {"x": 20 * case.normal(case["R"], case["C"])}


def arguments(x: Tensor) -> dict[str, Any]:
    y = x.new_empty(x.shape)
    return {"x": x, "y": y, "stride": x.stride(0), "columns": x.shape[1]}


def reference(x: Tensor) -> Tensor:
    return x.double().softmax(dim=1)


def eager(x: Tensor) -> Tensor:
    return x.softmax(dim=1)


KERNEL = Kernel(
    name="softmax",
    fn=softmax_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    eager=eager,
    grid=lambda given, constants: (given["x"].shape[0],),
    signature={"x": "*T:16", "y": "*T:16", "stride": "i32", "columns": "i32"},  # a vocabulary has any size
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (4096, 8), (8192, 8), (16384, 16), (32768, 4), (32768, 16))
    ),
    applies=lambda given, constants: given["columns"] <= constants["BLOCK"],
    shapes=({"R": 1, "C": 1}, {"R": 5, "C": 781}, {"R": 3, "C": 1024}, {"R": 2, "C": 5000}),
    sizes=tuple({"R": rows, "C": columns} for rows, columns in ((4096, 1024), (4096, 8192), (2048, 32000))),
    # y is rounded once from fp32, or cut off as the interpreter does; small shares are small differences of exponents
    tolerance={"fp16": Tolerance(2**-10, 2**-24), "bf16": Tolerance(2**-7, 1e-9), "fp32": Tolerance(2e-5, 1e-9)},
    bytes_moved=lambda case: 2 * case["R"] * case["C"] * case.itemsize,
    flops=lambda case: 5 * case["R"] * case["C"],
)
