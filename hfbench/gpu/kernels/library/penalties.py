"""Penalties on logits for tokens that were there before: repetition, then frequency and presence.

R = rows (sequences), V = vocabulary. `prompt_counts` and `output_counts` say how often each token stands in the prompt
and in what was generated; the strengths are one a row.

  repetition  l > 0: l / r, else l * r, for tokens of prompt or output; 1 is off. CTRL (arXiv:1909.05858, section 4.1),
              `RepetitionPenaltyLogitsProcessor` of transformers
  frequency   l - f * (times in the output); 0 is off. OpenAI: mu[j] - c[j] * frequency - (c[j] > 0) * presence
  presence    l - p, for tokens of the output; 0 is off

The order, and that frequency and presence look at the output alone, are those of `apply_penalties` in vLLM. A logit of
2 with r = 2, f = 0.5, p = 0.25 becomes 1 when its token stands in the prompt, and -0.25 when it was generated twice.
`in_place` changes the logits themselves. A logit of -inf stays what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def penalties_kernel(
    logits, y, prompt_counts, output_counts, repetition, frequency, presence,
    logits_stride, y_stride, prompt_stride, output_stride, vocabulary, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = token < vocabulary
    values = tl.load(logits + row * logits_stride + token, mask=inside, other=0.0).to(tl.float32)
    prompt = tl.load(prompt_counts + row * prompt_stride + token, mask=inside, other=0)
    output = tl.load(output_counts + row * output_stride + token, mask=inside, other=0)
    strength = tl.load(repetition + row)
    repeated = tl.where(values > 0, values / strength, values * strength)
    values = tl.where((prompt > 0) | (output > 0), repeated, values)
    values -= tl.load(frequency + row) * output.to(tl.float32)
    values -= tl.load(presence + row) * (output > 0).to(tl.float32)
    tl.store(y + row * y_stride + token, values.to(y.dtype.element_ty), mask=inside)


def inputs(case: Case) -> dict[str, Any]:
    """Half of the tokens are new, some are ruled out; row 0 has no penalty, others lower and raise. `pad` columns lie
    between two rows of logits, as where a vocabulary was padded."""
    rows, vocabulary = case["R"], case["V"]
    logits = (8 * case.normal(rows, vocabulary + case.shape.get("pad", 0)))[:, :vocabulary]
    logits[:, 3::7] = -float("inf")
    logits[:, 5::11] = 0
    repetition = 1 + 0.3 * case.normal(rows, dtype="fp32").clamp(-2, 2)
    frequency, presence = case.normal(rows, dtype="fp32"), case.normal(rows, dtype="fp32")
    if rows > 1:
        repetition[0], frequency[0], presence[0] = 1, 0, 0
    return {
        "logits": logits,
        "prompt_counts": (case.integers(-5, 4, rows, vocabulary)).clamp(min=0),
        "output_counts": (case.integers(-5, 4, rows, vocabulary)).clamp(min=0),
        "repetition": repetition,
        "frequency": frequency,
        "presence": presence,
        "in_place": bool(case["IN"]),
    }


def arguments(
    logits: Tensor,
    prompt_counts: Tensor,
    output_counts: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
    in_place: bool,
) -> dict[str, Any]:
    y = logits if in_place else logits.new_empty(logits.shape)
    return {
        "logits": logits,
        "y": y,
        "prompt_counts": prompt_counts,
        "output_counts": output_counts,
        "repetition": repetition,
        "frequency": frequency,
        "presence": presence,
        "logits_stride": logits.stride(0),
        "y_stride": y.stride(0),
        "prompt_stride": prompt_counts.stride(0),
        "output_stride": output_counts.stride(0),
        "vocabulary": logits.shape[1],
    }


def reference(
    logits: Tensor,
    prompt_counts: Tensor,
    output_counts: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
    in_place: bool,
) -> Tensor:
    wide, r = logits.double(), repetition.double()[:, None]
    seen = (prompt_counts > 0) | (output_counts > 0)
    wide = wide.where(~seen, (wide / r).where(wide > 0, wide * r))
    return wide - frequency.double()[:, None] * output_counts - presence.double()[:, None] * (output_counts > 0)


KERNEL = Kernel(
    name="penalties",
    fn=penalties_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    grid=lambda given, constants: (given["logits"].shape[0], triton.cdiv(given["vocabulary"], constants["BLOCK"])),
    signature={
        **dict.fromkeys(("logits", "y"), "*T:16"),
        **dict.fromkeys(("prompt_counts", "output_counts"), "*i32:16"),
        **dict.fromkeys(("repetition", "frequency", "presence"), "*fp32:16"),
        # a vocabulary has any size, 50257 for one
        **dict.fromkeys(("logits_stride", "y_stride", "prompt_stride", "output_stride", "vocabulary"), "i32"),
    },
    configs=tuple(
        Config(constants={"BLOCK": block}, num_warps=warps)
        for block, warps in ((1024, 4), (1024, 8), (2048, 8), (4096, 8), (8192, 8))
    ),
    shapes=(
        {"R": 1, "V": 1, "IN": 0},
        {"R": 0, "V": 64, "IN": 1},
        {"R": 5, "V": 781, "pad": 3, "IN": 0},
        {"R": 3, "V": 1024, "IN": 1},
        {"R": 2, "V": 5003, "pad": 5, "IN": 1},
    ),
    sizes=tuple({"R": rows, "V": 151936, "IN": 1} for rows in (1, 32, 256)),
    dtypes=("fp32", "fp16", "bf16"),
    # y is rounded once from fp32, or cut off as the interpreter does; what is taken off may nearly cancel a logit of up
    # to 40, and leaves some 4e-6 of it uncertain
    tolerance={"fp16": Tolerance(2**-10, 4e-6), "bf16": Tolerance(2**-7, 4e-6), "fp32": Tolerance(1e-6, 4e-6)},
    bytes_moved=lambda case: case["R"] * (case["V"] * (2 * case.itemsize + 8) + 12),
    flops=lambda case: 5 * case["R"] * case["V"],
)
