"""What lies beside quantised weights of one checkpoint: scales to multiply by, or signs that values are packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.columns import Shape, TensorInfo
from hfbench.models.values.decode import DECODED, EIGHT_BITS, Array, load_numpy, numbers
from hfbench.models.values.reading import Weights

Settings = Mapping[str, Any]
"""What a configuration says in quantization_config."""

SCALED = frozenset({*EIGHT_BITS, "I8"})
"""Dtypes whose values are multiplied by scales where there are some."""

SCALE_ENDS = ("_scale_inv", "_scale")
"""What is put behind the name of a weight; DeepSeek's `_scale_inv` is multiplied by as well, whatever its name says."""

PACKED_DTYPES = frozenset({"U8", "I8", "U32", "I32"})
PACKED_ENDS = (".qweight", ".qzeros", ".weight_packed", ".weight_zero_point")
"""GPTQ and AWQ, then compressed-tensors: several values in one element."""

PACKED_BESIDE = (
    ".absmax",
    ".quant_map",
    "_scale_2",
    ".quant_state.bitsandbytes__nf4",
    ".quant_state.bitsandbytes__fp4",
)
"""What lies beside the packed weights of bitsandbytes and ModelOpt, behind their name."""

USUAL_BLOCK = 128
MOST_SCALES = 2**22
"""Scales of one tensor that are held: 32 MiB."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The scales of one weight, each for a block of it. `steps` are the block's sizes along the weight's dimensions."""

    name: str
    shape: Shape
    """The weight's."""
    counts: Shape
    """Scales along each dimension."""
    steps: Shape
    values: Array
    """In the order of storage, float64."""

    def of_rows(self, first: int, count: int) -> Array | float:
        """The scale of every element of `count` rows along the last dimension from row `first` on."""
        if self.values.size == 1:
            return float(self.values[0])
        np = load_numpy()
        row, place = np.arange(first, first + count), np.zeros(count, "i8")
        strides = [*accumulate(reversed(self.counts[1:-1]), mul, initial=1)][: len(self.shape) - 1]
        for size, step, stride in zip(reversed(self.shape[:-1]), reversed(self.steps[:-1]), strides, strict=True):
            row, at = np.divmod(row, size)
            place += at // step * stride
        lines = self.values.reshape(-1, self.counts[-1])[place]
        return np.repeat(lines, self.steps[-1], axis=1)[:, : self.shape[-1]].ravel()


class Quantized:
    """Finds what belongs to the weights of one side; `settings` is its quantization_config."""

    def __init__(self, checkpoint: Checkpoint, weights: Weights, settings: Settings) -> None:
        self.checkpoint, self.weights = checkpoint, weights
        self.rows = {name: row for row, name in enumerate(checkpoint.columns.names)}
        self.block = _block(settings)

    def packed(self, tensor: TensorInfo) -> bool:
        """True when an element of the tensor holds several values, or parts of them."""
        if tensor.dtype not in DECODED:
            return True
        name = tensor.name
        return tensor.dtype in PACKED_DTYPES and (
            name.endswith(PACKED_ENDS)
            or any(name + end in self.rows for end in PACKED_BESIDE)
            or (name.endswith("_blocks") and name.removesuffix("_blocks") + "_scales" in self.rows)
            or (name.endswith("_scales") and name.removesuffix("_scales") + "_blocks" in self.rows)
        )

    def scale_beside(self, tensor: TensorInfo) -> TensorInfo | None:
        """The tensor that holds the scales of an 8-bit weight."""
        if tensor.dtype not in SCALED:
            return None
        names = [tensor.name + end for end in SCALE_ENDS]
        if tensor.name.endswith(".weight"):
            names.append(tensor.name.removesuffix("weight") + "scale")
        row = next((self.rows[name] for name in names if name in self.rows), None)
        return None if row is None else self.checkpoint.columns[row]

    def scale(self, tensor: TensorInfo, beside: TensorInfo) -> Scale | None:
        """The scales of a weight; None when their dtype or shape does not tell which belongs where."""
        if beside.dtype not in DECODED or beside.dtype in ("U8", "I8", "BOOL", "C64") or beside.elements > MOST_SCALES:
            return None
        counts = (1,) * len(tensor.shape) if beside.elements == 1 else beside.shape
        counts = (*counts, *(1,) * (len(tensor.shape) - len(counts)))
        if len(counts) != len(tensor.shape) or not tensor.shape:
            return None
        steps = self._steps(tensor.shape, counts)
        if steps is None:
            return None
        values = numbers(self.weights.read(beside, 0, beside.bytes), beside.dtype).astype("f8")
        return Scale(beside.name, tensor.shape, counts, steps, values)

    def _steps(self, shape: Shape, counts: Shape) -> Shape | None:
        """Elements a scale stands for along each dimension: the known block, else equal parts, else None."""
        blocks = (*(USUAL_BLOCK,) * len(shape), *self.block)[-len(shape) :]
        for equal_parts in (False, True):
            steps = tuple(_step(*each, equal_parts=equal_parts) for each in zip(shape, counts, blocks, strict=True))
            if all(steps):
                return steps
        return None


def same_scales(a: Quantized, one: TensorInfo, b: Quantized, other: TensorInfo) -> bool:
    """True when two 8-bit weights of the same bytes mean the same: both have the same scales, or none."""
    scale_a, scale_b = a.scale_beside(one), b.scale_beside(other)
    if scale_a is None or scale_b is None:
        return scale_a is scale_b
    alike = (scale_a.dtype, scale_a.shape) == (scale_b.dtype, scale_b.shape)
    return alike and all(
        a.weights.read(scale_a, begin, begin + MOST_SCALES) == b.weights.read(scale_b, begin, begin + MOST_SCALES)
        for begin in range(0, scale_a.bytes, MOST_SCALES)
    )


def _step(size: int, count: int, block: int, *, equal_parts: bool) -> int:
    """The size of a block along one dimension, 0 when `count` blocks do not fill it."""
    if count in (1, size):
        return size if count == 1 else 1
    if equal_parts:
        return size // count if count and size % count == 0 else 0
    return block if -(-size // block) == count else 0


def _block(settings: Settings) -> tuple[int, int]:
    told: Any = settings.get("weight_block_size")
    if isinstance(told, list) and len(told) == 2 and all(type(each) is int and each > 0 for each in told):
        return told[0], told[1]
    return USUAL_BLOCK, USUAL_BLOCK
