"""Residual add and root-mean-square norm in one pass: total = x + residual; y = total / sqrt(mean(total^2) + eps) * w.

R = rows (tokens), C = columns (hidden size). Both outputs are new tensors. The norm is taken of the sum as it stands in
fp32, before `total` is rounded to the element type, as in `RMSNorm.forward_native` of vLLM: x of [[1, 1]], residual of
[[2, 3]], w of [1, 1] and eps of 0 give a total of [[3, 4]] and a y of [[0.848, 1.131]].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def add_rmsnorm_kernel(
    x, residual, w, total, y, x_stride, residual_stride, total_stride, y_stride, columns, eps, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    values += tl.load(residual + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + row * total_stride + column, values.to(total.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * y_stride + column, (values * scale * weight).to(y.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """`pad` columns lie between two rows of x and of the residual, as in slices of wider tensors.

    Row 0 is so small that eps decides, as in a layer whose output is switched off.
    """
    rows, columns, pad = case["R"], case["C"], case.shape.get("pad", 0)
    x = case.normal(rows, columns + pad)[:, :columns]
    residual = case.normal(rows, columns + pad)[:, :columns]
    x[:1] *= 2**-10
    residual[:1] *= 2**-10
    return {"x": x, "residual": residual, "w": 1 + 0.1 * case.normal(columns), "eps": 1e-6}


def arguments(x: Tensor, residual: Tensor, w: Tensor, eps: float) -> dict[str, Any]:
    given = {"x": x, "residual": residual, "total": x.new_empty(x.shape), "y": x.new_empty(x.shape)}
    strides = {f"{name}_stride": tensor.stride(0) for name, tensor in given.items()}
    return {**given, "w": w, **strides, "columns": x.shape[1], "eps": eps}


def reference(x: Tensor, residual: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    total = x.double() + residual.double()
    return total, total * (total.square().mean(dim=1, keepdim=True) + eps).rsqrt() * w.double()


def eager(x: Tensor, residual: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    from torch.nn.functional import rms_norm

    total = x + residual
    return total, rms_norm(total, total.shape[1:], w, eps)


KERNEL = Kernel(
    name="add_rmsnorm",
    fn=add_rmsnorm_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("total", "y"),
    reference=reference,
    eager=eager,
    grid=lambda given, constants: (given["x"].shape[0],),
    signature={
        **dict.fromkeys(("x", "residual", "w", "total", "y"), "*T:16"),
        **dict.fromkeys(("x_stride", "residual_stride", "total_stride", "y_stride", "columns"), "i32:16"),
        "eps": "fp32",
    },
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (2048, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16))
    ),
    applies=lambda given, constants: given["columns"] <= constants["BLOCK"],
    shapes=(
        {"R": 1, "C": 1},
        {"R": 0, "C": 64},
        {"R": 5, "C": 781, "pad": 3},
        {"R": 3, "C": 1024},
        {"R": 2, "C": 5120},
    ),
    sizes=tuple({"R": rows, "C": columns} for rows, columns in ((1, 4096), (4096, 4096), (8192, 5120))),
    # each output is rounded once from fp32, or cut off as the interpreter does: a unit in the last place, of subnormals
    # too
    tolerance={"fp16": Tolerance(2**-10, 2**-24), "bf16": Tolerance(2**-7), "fp32": Tolerance(1e-5, 1e-6)},
    bytes_moved=lambda case: (4 * case["R"] * case["C"] + case["C"]) * case.itemsize,
    flops=lambda case: 5 * case["R"] * case["C"],
)
