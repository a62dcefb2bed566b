"""Matrix product c = a @ b, in tiles that neighbouring programs share through the L2 cache.

M, N, K = rows of a, columns of b, what is summed over. A program owns one tile of BM x BN of c and walks along K in
steps of BK; the tiles are numbered in groups of GM rows, so that programs that run together read the same rows and
columns: with GM = 2 and 2 x 3 tiles, programs 0 to 5 own (0,0) (1,0) (0,1) (1,1) (0,2) (1,2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    tiles_down, tiles_across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (GM * tiles_across) * GM
    rows_of_tiles = min(tiles_down - first, GM)
    down = first + program % (GM * tiles_across) % rows_of_tiles
    across = program % (GM * tiles_across) // rows_of_tiles
    # rows and columns beyond the edge wrap around: what they give is never stored, and loads need no mask along M and N
    rows = (down * BM + tl.arange(0, BM)) % M
    columns = (across * BN + tl.arange(0, BN)) % N
    steps = tl.arange(0, BK)
    a_tile = a + rows[:, None] * a_row + steps[None, :] * a_column
    b_tile = b + steps[:, None] * b_row + columns[None, :] * b_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        a_values = tl.load(a_tile, mask=steps[None, :] < K - step * BK, other=0.0)
        b_values = tl.load(b_tile, mask=steps[:, None] < K - step * BK, other=0.0)
        total = tl.dot(a_values, b_values, total)
        a_tile += BK * a_column
        b_tile += BK * b_row
    rows = down * BM + tl.arange(0, BM)
    columns = across * BN + tl.arange(0, BN)
    tl.store(
        c + rows[:, None] * c_row + columns[None, :] * c_column,
        total.to(c.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def inputs(case: Case) -> dict[str, Any]:
    return {"a": case.normal(case["M"], case["K"]), "b": case.normal(case["K"], case["N"])}


def arguments(a: Tensor, b: Tensor) -> dict[str, Any]:
    (M, K), N = a.shape, b.shape[1]
    c = a.new_empty((M, N))
    strides = {"a_row": a.stride(0), "a_column": a.stride(1), "b_row": b.stride(0), "b_column": b.stride(1)}
    return {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K, **strides, "c_row": c.stride(0), "c_column": c.stride(1)}


def reference(a: Tensor, b: Tensor) -> Tensor:
    return a.double() @ b.double()


def eager(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def tile(rows: int, columns: int, depth: int, warps: int, stages: int) -> Config:
    """A configuration called by its tile."""
    constants = {"BM": rows, "BN": columns, "BK": depth, "GM": 8}
    return Config(constants=constants, num_warps=warps, num_stages=stages, name=f"{rows}x{columns}x{depth}")


KERNEL = Kernel(
    name="matmul",
    fn=matmul_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("c",),
    reference=reference,
    eager=eager,
    grid=lambda given, constants: (
        triton.cdiv(given["M"], constants["BM"]) * triton.cdiv(given["N"], constants["BN"]),
    ),
    signature={
        **dict.fromkeys(("a", "b", "c"), "*T:16"),
        **dict.fromkeys(("M", "N", "K"), "i32:16"),
        **dict.fromkeys(("a_row", "b_row", "c_row"), "i32:16"),
        **dict.fromkeys(("a_column", "b_column", "c_column"), "1"),
    },
    configs=(
        tile(64, 64, 32, warps=4, stages=5),
        tile(128, 128, 64, warps=4, stages=3),
        tile(128, 256, 64, warps=8, stages=3),
        tile(128, 256, 64, warps=8, stages=4),
        tile(256, 256, 64, warps=4, stages=3),
    ),
    shapes=({"M": 1, "N": 1, "K": 1}, {"M": 130, "N": 97, "K": 70}, {"M": 64, "N": 320, "K": 128}),
    sizes=tuple({"M": rows, "N": 4096, "K": 4096} for rows in (16, 512, 4096)),
    # products are summed in fp32, on GPUs of TF32 factors where a and b are fp32; c is rounded once. Terms cancel, so
    # that an element may be small and its error is not
    tolerance={"fp16": Tolerance(2**-10, 1e-3), "bf16": Tolerance(2**-7, 1e-2), "fp32": Tolerance(1e-3, 5e-2)},
    bytes_moved=lambda case: (case["M"] * case["K"] + case["K"] * case["N"] + case["M"] * case["N"]) * case.itemsize,
    flops=lambda case: 2 * case["M"] * case["N"] * case["K"],
)
