"""Weights in FP8 (E4M3) with a scale for each block of 128 x 128, back to floats: w = fp8 * scale.

M, N = rows (outputs of the layer), columns (inputs). `scales` is fp32 [ceil(M/128), ceil(N/128)]; blocks at the edge
may be cut: `weight_scale_inv` of DeepSeek-V3 and of Qwen3's FP8 checkpoints, which despite its name is multiplied. The
type is torch's float8_e4m3fn: no infinity, NaN where all bits but the sign are set, 448 at most. A byte of 0x38 is 1.

The eight bits are read as a whole number and moved to those of fp16, which has a bias of 15 where E4M3 has 7: times 256
that is the value, subnormal ones too. Triton knows the type itself from sm_89 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SIDE = tl.constexpr(128)
"""Rows and columns of a block that has one scale."""


@triton.jit
def decoded(byte):
    """E4M3 as fp32."""
    bits = byte.to(tl.int16)
    half = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True)
    return tl.where((bits & 0x7F) == 0x7F, float("nan"), half.to(tl.float32) * 256.0)


@triton.jit
def dequant_fp8_kernel(
    weight, scales, w, rows, columns, weight_stride, scales_stride, w_stride, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    tl.static_assert(SIDE % BM == 0 and SIDE % BN == 0, "a tile has one scale")
    first, begin = tl.program_id(0) * BM, tl.program_id(1) * BN
    row, column = (first + tl.arange(0, BM))[:, None].to(tl.int64), (begin + tl.arange(0, BN))[None, :]
    inside = (row < rows) & (column < columns)
    scale = tl.load(scales + (first // SIDE).to(tl.int64) * scales_stride + begin // SIDE)
    values = decoded(tl.load(weight + row * weight_stride + column, mask=inside, other=0)) * scale
    tl.store(w + row * w_stride + column, values.to(w.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """Bytes of any value: NaN, both zeros and subnormal numbers among them."""
    import torch

    rows, columns = case["M"], case["N"]
    codes = case.integers(0, 256, rows, columns, dtype="u8")
    scales = 1e-3 + 0.01 * case.normal(-(-rows // 128), -(-columns // 128), dtype="fp32").abs()
    return {"weight": codes.view(torch.float8_e4m3fn), "scales": scales, "dtype": case.torch_dtype}


def arguments(weight: Tensor, scales: Tensor, dtype: torch.dtype) -> dict[str, Any]:
    import torch

    (rows, columns), codes = weight.shape, weight.view(torch.uint8)
    w = weight.new_empty(weight.shape, dtype=dtype)
    strides = {"weight_stride": codes.stride(0), "scales_stride": scales.stride(0), "w_stride": w.stride(0)}
    return {"weight": codes, "scales": scales, "w": w, "rows": rows, "columns": columns, **strides}


def reference(weight: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    rows, columns = weight.shape
    each = scales.double().repeat_interleave(128, dim=0)[:rows].repeat_interleave(128, dim=1)[:, :columns]
    return weight.double() * each


def tile(rows: int, columns: int, warps: int) -> Config:
    return Config(constants={"BM": rows, "BN": columns}, num_warps=warps, name=f"{rows}x{columns}")


KERNEL = Kernel(
    name="dequant_fp8",
    fn=dequant_fp8_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("w",),
    reference=reference,
    grid=lambda given, constants: (
        triton.cdiv(given["rows"], constants["BM"]),
        triton.cdiv(given["columns"], constants["BN"]),
    ),
    signature={
        "weight": "*u8:16",
        "scales": "*fp32:16",
        "w": "*T:16",
        "rows": "i32",
        "columns": "i32:16",
        "weight_stride": "i32:16",
        "scales_stride": "i32",
        "w_stride": "i32:16",
    },
    configs=(tile(16, 128, 4), tile(32, 128, 4), tile(64, 128, 4), tile(128, 128, 4), tile(128, 128, 8)),
    shapes=(
        {"M": 1, "N": 1},
        {"M": 0, "N": 128},
        {"M": 130, "N": 257},
        {"M": 128, "N": 256},
        {"M": 576, "N": 100},  # kv_a_proj of DeepSeek-V3 has 576 rows: 4.5 blocks
    ),
    sizes=({"M": 7168, "N": 2048}, {"M": 18432, "N": 7168}),
    dtypes=("bf16", "fp16", "fp32"),
    # w is rounded once from fp32, or cut off as the interpreter does; the product itself is off by half a unit of fp32
    tolerance={"bf16": Tolerance(2**-7, 1e-30), "fp16": Tolerance(2**-10, 2**-24), "fp32": Tolerance(2**-23, 1e-30)},
    bytes_moved=lambda case: (
        case["M"] * case["N"] * (1 + case.itemsize) + 4 * -(-case["M"] // 128) * -(-case["N"] // 128)
    ),
    flops=lambda case: case["M"] * case["N"],
)
