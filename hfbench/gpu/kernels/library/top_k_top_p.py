"""Top-k, then top-p: logits that are not to be sampled become -inf.

R = rows (sequences), V = vocabulary; k and p are one a row. k keeps the k largest logits, and all when it is 0 or less
or V and more. p, of the probabilities that k left, keeps a token when those strictly more likely sum to less than p:
the smallest set whose sum reaches p. The most likely is always kept; 1 and more keep all.

Ties are kept together: of logits [2, 1, 1, 0], k = 2 leaves [2, 1, 1, -inf], as `TopKLogitsWarper` of transformers
does; and so does p = 0.7, where the two of 0.2 stand behind 0.53. Top-p of transformers and vLLM cuts ties by how a
sort happened to place them. Rows must be free of NaN. A row of -inf alone stays one.

No sort: both thresholds are found bit by bit, the highest first, as the largest number such that the logits from it on
are k or more, or hold p or more. A float's bits order as it does once those of negative ones are turned over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor

LOWEST = tl.constexpr(-(2**31))
BITS = tl.constexpr(32)


@triton.jit
def ordered(values):
    """Whole numbers that order as the floats do; the two zeros are one."""
    bits = tl.where(values == 0.0, 0.0, values).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def weight_from(row, vocabulary, threshold, floor, largest, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """Of the logits from the threshold and the floor on: how many, or the sum of exp(logit - largest)."""
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for begin in range(0, vocabulary, BLOCK):
        token = begin + tl.arange(0, BLOCK)
        values = tl.load(row + token, mask=token < vocabulary, other=-float("inf")).to(tl.float32)
        keys = ordered(values)
        chosen = (token < vocabulary) & (keys >= threshold) & (keys >= floor)
        if COUNT:
            total += chosen.to(tl.float32)
        else:
            total += tl.where(chosen, tl.exp(values - largest), 0.0)
    return tl.sum(total, axis=0)


@triton.jit
def highest(row, vocabulary, steps, need, floor, largest, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The highest threshold from which on the weight is `need` or more; the lowest of all after no step."""
    threshold = tl.full((), LOWEST, tl.int64)
    for step in range(steps):
        higher = threshold + (tl.full((), 1, tl.int64) << (BITS - 1 - step))
        enough = weight_from(row, vocabulary, higher.to(tl.int32), floor, largest, COUNT, BLOCK) >= need
        threshold = tl.where(enough, higher, threshold)
    return threshold.to(tl.int32)


@triton.jit
def top_k_top_p_kernel(logits, y, k, p, logits_stride, y_stride, vocabulary, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row = logits + program * logits_stride
    most = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for begin in range(0, vocabulary, BLOCK):
        token = begin + tl.arange(0, BLOCK)
        values = tl.load(row + token, mask=token < vocabulary, other=-float("inf")).to(tl.float32)
        most = tl.maximum(most, values)
    largest = tl.max(most, axis=0)
    lowest = tl.full((), LOWEST, tl.int32)

    count = tl.load(k + program)
    steps = tl.where((count > 0) & (count < vocabulary), BITS, 0)
    floor = highest(row, vocabulary, steps, count.to(tl.float32), lowest, largest, True, BLOCK)

    share = tl.load(p + program)
    steps = tl.where(share < 1.0, BITS, 0)
    need = share * weight_from(row, vocabulary, lowest, floor, largest, False, BLOCK)
    threshold = highest(row, vocabulary, steps, need, floor, largest, False, BLOCK)
    # p of 0 is reached by nothing at all: the most likely stays
    threshold = tl.maximum(tl.minimum(threshold, ordered(largest)), floor)

    for begin in range(0, vocabulary, BLOCK):
        token = begin + tl.arange(0, BLOCK)
        values = tl.load(row + token, mask=token < vocabulary, other=-float("inf"))
        kept = ordered(values.to(tl.float32)) >= threshold
        outside = tl.full((BLOCK,), -float("inf"), dtype=y.dtype.element_ty)
        tl.store(y + program * y_stride + token, tl.where(kept, values, outside), mask=token < vocabulary)


def inputs(case: Case) -> dict[str, Any]:
    """Rows differ in k and p, off among them; some logits tie, some are ruled out, all of row 1 is, and rows 2 and 3
    have none above zero."""
    import torch

    rows, vocabulary = case["R"], case["V"]
    logits = (4 * case.normal(rows, vocabulary + case.shape.get("pad", 0)))[:, :vocabulary]
    logits[:, 1::3] = logits[:, 1::3].round()
    logits[2:4] -= 100
    logits[:, 3::7] = -float("inf")
    logits[1:2] = -float("inf")
    counts, shares = [5, 3, 0, 40, vocabulary, 1, -1], [0.9, 0.5, 0.8, 1.0, 0.0, 0.3, 1.0]
    k = torch.tensor([counts[row % 7] for row in range(rows)], dtype=torch.int32, device=case.device)
    p = torch.tensor([shares[row % 7] for row in range(rows)], dtype=torch.float32, device=case.device)
    return {"logits": logits, "k": k, "p": p}


def arguments(logits: Tensor, k: Tensor, p: Tensor) -> dict[str, Any]:
    y = logits.new_empty(logits.shape)
    strides = {"logits_stride": logits.stride(0), "y_stride": y.stride(0)}
    return {"logits": logits, "y": y, "k": k, "p": p, **strides, "vocabulary": logits.shape[1]}


def reference(logits: Tensor, k: Tensor, p: Tensor) -> Tensor:
    import torch

    wide, infinite = logits.double(), float("inf")
    limited = ((k > 0) & (k < wide.shape[1]))[:, None]
    last = wide.sort(dim=1, descending=True).values.gather(1, k.long().clamp(1, wide.shape[1])[:, None] - 1)
    wide = wide.masked_fill(limited & (wide < last), -infinite)
    likely = wide.softmax(dim=1).nan_to_num().sort(dim=1, descending=True)
    of_ties = torch.searchsorted(-likely.values, -likely.values)  # the first place of each value
    before = (likely.values.cumsum(dim=1) - likely.values).gather(1, of_ties)
    kept = (before < p.double()[:, None]) | (of_ties == 0) | (p >= 1)[:, None]
    return wide.masked_fill(~torch.zeros_like(kept).scatter(1, likely.indices, kept), -infinite)


KERNEL = Kernel(
    name="top_k_top_p",
    fn=top_k_top_p_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    grid=lambda given, constants: (given["logits"].shape[0],),
    # a vocabulary has any size, 50257 for one
    signature={
        "logits": "*T:16",
        "y": "*T:16",
        "k": "*i32:16",
        "p": "*fp32:16",
        "logits_stride": "i32",
        "y_stride": "i32",
        "vocabulary": "i32",
    },
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (4096, 8), (4096, 16), (8192, 8), (16384, 16))
    ),
    shapes=(
        {"R": 1, "V": 1},
        {"R": 0, "V": 64},
        {"R": 7, "V": 781, "pad": 3},
        {"R": 4, "V": 2051},
        {"R": 3, "V": 1024},
    ),
    sizes=tuple({"R": rows, "V": 151936} for rows in (1, 32, 256)),
    dtypes=("fp32", "fp16", "bf16"),
    # what is kept is not changed. Sums of probabilities are fp32: a token at which p is reached to within 1e-6 may fall
    # on either side, and none of the cases has one
    tolerance={"fp32": Tolerance(0), "fp16": Tolerance(0), "bf16": Tolerance(0)},
    bytes_moved=lambda case: case["R"] * (2 * case["V"] * case.itemsize + 8),
    flops=lambda case: 4 * case["R"] * case["V"],  # one softmax; the search for thresholds is the kernel's own affair
)
