"""Root-mean-square norm of each row: y = x / sqrt(mean(x^2) + eps) * w.

R = rows (tokens), C = columns (hidden size). One program normalises one row, which fits one block:
x of [[3, 4]] with w of [1, 1] and eps of 0 gives [[0.848, 1.131]], for the root mean square is 3.536.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def rmsnorm_kernel(x, w, y, x_stride, y_stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * y_stride + column, (values * scale * weight).to(y.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """`pad` columns lie between two rows of x, as in a slice of a wider tensor."""
    x = case.normal(case["R"], case["C"] + case.shape.get("pad", 0))[:, : case["C"]]
    return {"x": x, "w": 1 + 0.1 * case.normal(case["C"]), "eps": 1e-6}


def arguments(x: Tensor, w: Tensor, eps: float) -> dict[str, Any]:
    y = x.new_empty(x.shape)
    strides = {"x_stride": x.stride(0), "y_stride": y.stride(0)}
    return {"x": x, "w": w, "y": y, **strides, "columns": x.shape[1], "eps": eps}


def reference(x: Tensor, w: Tensor, eps: float) -> Tensor:
    wide = x.double()
    return wide * (wide.square().mean(dim=1, keepdim=True) + eps).rsqrt() * w.double()


KERNEL = Kernel(
    name="rmsnorm",
    fn=rmsnorm_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    grid=lambda given, constants: (given["x"].shape[0],),
    signature={
        "x": "*T:16",
        "w": "*T:16",
        "y": "*T:16",
        "x_stride": "i32:16",
        "y_stride": "i32:16",
        "columns": "i32:16",
        "eps": "fp32",
    },
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (2048, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16))
    ),
    applies=lambda given, constants: given["columns"] <= constants["BLOCK"],
    shapes=({"R": 1, "C": 1}, {"R": 5, "C": 781, "pad": 3}, {"R": 3, "C": 1024}, {"R": 2, "C": 5120}),
    sizes=tuple({"R": rows, "C": columns} for rows, columns in ((1, 4096), (4096, 4096), (8192, 8192))),
    # y is rounded once from fp32, or cut off as the interpreter does: a unit in the last place, of subnormals too
    tolerance={"fp16": Tolerance(2**-10, 2**-24), "bf16": Tolerance(2**-7), "fp32": Tolerance(1e-5, 1e-6)},
    bytes_moved=lambda case: (2 * case["R"] * case["C"] + case["C"]) * case.itemsize,
    flops=lambda case: 4 * case["R"] * case["C"],
)
