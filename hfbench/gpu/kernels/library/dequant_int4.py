"""Weights of 4 bits in groups, as GPTQ packs them, back to floats: w = (q - zero) * scale.

K = rows (inputs of the layer), N = columns (outputs), G = rows of a group. The packing is that of AutoGPTQ and
GPTQModel for bits = 4 without `desc_act`:

  qweight  int32 [K/8, N]            row 8i + j of a column is bits 4j to 4j + 3 of word i
  qzeros   int32 [ceil(K/G), N/8]    column 8i + j of a group is bits 4j to 4j + 3 of word i
  scales   [ceil(K/G), N]            in the element type of w
  zero_offset                        what was taken off a zero before it was packed: 1 for `checkpoint_format: gptq`, 0
                                     for `gptq_v2`. A sum of 16 is not wrapped to 0

K, N and G are divided by 8. With `desc_act` rows of a group are not neighbours (`g_idx`), and AWQ packs columns in the
order 0 2 4 6 1 3 5 7: neither is served. A word of 0x76543210 with a zero of 7, an offset of 1 and a scale of 0.5 gives
a column of -4, -3.5, ..., -0.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def dequant_int4_kernel(
    qweight, qzeros, scales, w, words, columns, words_of_group, zero_offset,
    qweight_stride, qzeros_stride, scales_stride, w_stride, WORDS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    word = (tl.program_id(0) * WORDS + tl.arange(0, WORDS))[:, None].to(tl.int64)
    column = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    inside = (word < words) & (column < columns)
    group = word // words_of_group
    packed = tl.load(qweight + word * qweight_stride + column, mask=inside, other=0)
    zeros = tl.load(qzeros + group * qzeros_stride + column // 8, mask=inside, other=0)
    zero = ((zeros >> (column % 8 * 4)) & 15) + zero_offset
    scale = tl.load(scales + group * scales_stride + column, mask=inside, other=0.0).to(tl.float32)
    target = w + word * 8 * w_stride + column
    for nibble in tl.static_range(8):
        value = (((packed >> (4 * nibble)) & 15) - zero).to(tl.float32) * scale
        tl.store(target + nibble * w_stride, value.to(w.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """Words of any bits, the sign among them."""
    rows, columns = case["K"], case["N"]
    groups = -(-rows // case["G"])
    return {
        "qweight": case.integers(-(2**31), 2**31, rows // 8, columns),
        "qzeros": case.integers(-(2**31), 2**31, groups, columns // 8),
        "scales": 0.01 * case.normal(groups, columns).abs() + 2**-10,
        "group": case["G"],
        "zero_offset": case["OFF"],
    }


def arguments(qweight: Tensor, qzeros: Tensor, scales: Tensor, group: int, zero_offset: int) -> dict[str, Any]:
    words, columns = qweight.shape
    w = scales.new_empty((8 * words, columns))
    return {
        "qweight": qweight,
        "qzeros": qzeros,
        "scales": scales,
        "w": w,
        "words": words,
        "columns": columns,
        "words_of_group": group // 8,
        "zero_offset": zero_offset,
        "qweight_stride": qweight.stride(0),
        "qzeros_stride": qzeros.stride(0),
        "scales_stride": scales.stride(0),
        "w_stride": w.stride(0),
    }


def reference(qweight: Tensor, qzeros: Tensor, scales: Tensor, group: int, zero_offset: int) -> Tensor:
    import torch

    shifts = torch.arange(0, 32, 4, device=qweight.device)
    q = ((qweight.long()[:, None, :] >> shifts[:, None]) & 15).flatten(0, 1)
    zeros = ((qzeros.long()[:, :, None] >> shifts) & 15).flatten(1) + zero_offset
    of_row = torch.arange(len(q), device=q.device) // group
    return (q - zeros[of_row]).double() * scales.double()[of_row]


def config(words: int, columns: int, warps: int) -> Config:
    return Config(constants={"WORDS": words, "COLUMNS": columns}, num_warps=warps)


KERNEL = Kernel(
    name="dequant_int4",
    fn=dequant_int4_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("w",),
    reference=reference,
    grid=lambda given, constants: (
        triton.cdiv(given["words"], constants["WORDS"]),
        triton.cdiv(given["columns"], constants["COLUMNS"]),
    ),
    signature={
        "qweight": "*i32:16",
        "qzeros": "*i32:16",
        "scales": "*T:16",
        "w": "*T:16",
        "words": "i32:16",
        "columns": "i32:16",
        "words_of_group": "i32",
        "zero_offset": "i32",
        **dict.fromkeys(("qweight_stride", "qzeros_stride", "scales_stride", "w_stride"), "i32:16"),
    },
    configs=(config(4, 256, 4), config(8, 128, 4), config(8, 256, 8), config(16, 128, 4), config(1, 1024, 4)),
    shapes=(
        {"K": 8, "N": 8, "G": 8, "OFF": 1},
        {"K": 120, "N": 72, "G": 32, "OFF": 1},  # the last group is not whole
        {"K": 256, "N": 264, "G": 128, "OFF": 1},
        {"K": 64, "N": 1032, "G": 64, "OFF": 0},  # one group: group_size of -1
    ),
    sizes=tuple({"K": rows, "N": columns, "G": 128, "OFF": 1} for rows, columns in ((4096, 4096), (4096, 14336))),
    dtypes=("fp16", "bf16", "fp32"),
    # w is rounded once from fp32, where the product of a whole number and a scale is exact but for fp32 scales
    tolerance={"fp16": Tolerance(2**-10, 2**-24), "bf16": Tolerance(2**-7), "fp32": Tolerance(2**-23)},
    bytes_moved=lambda case: (
        case["K"] * case["N"] // 2
        + -(-case["K"] // case["G"]) * (case["N"] // 2 + case["N"] * case.itemsize)
        + case["K"] * case["N"] * case.itemsize
    ),
    flops=lambda case: 2 * case["K"] * case["N"],
)
