"""fp8 weights with a scale for every block, as DeepSeek V3 is stored, decoded to bf16 while they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hfbench.convert.boxes import Box, TensorSpec
from hfbench.convert.stored import Decoded, Stored, TensorSet
from hfbench.errors import HfbenchError
from hfbench.models.problem import counted, quoted
from hfbench.models.values.decode import Array, eight_bit_values, load_numpy

SCALES = "_scale_inv"
CODE = "F8_E4M3"


@dataclass(frozen=True)
class BlockScaled:
    """A matrix of E4M3 codes whose blocks of `block` rows and columns have a float32 factor each; read as bf16."""

    codes: Stored
    scales: Stored
    block: tuple[int, int]

    @property
    def spec(self) -> TensorSpec:
        """The decoded matrix."""
        return replace(self.codes.spec, dtype="BF16")

    @property
    def files(self) -> tuple[Path, ...]:
        """Where codes and scales lie."""
        return (self.codes.file, self.scales.file)

    def wrong_scales(self) -> Mapping[str, int]:
        """Scales that make a block of weights NaN or infinite; no code is read."""
        np = load_numpy()
        scales = _mapped(self.scales, np.dtype("<f4"))
        return {"nan": int(np.isnan(scales).sum()), "inf": int(np.isinf(scales).sum())}

    def read(self, box: Box) -> bytes:
        """Codes times scales in float32, rounded to the nearest bf16."""
        np = load_numpy()
        rows, columns = (min(step, max(1, size)) for step, size in zip(self.block, self.spec.shape, strict=True))
        codes = _mapped(self.codes, np.uint8)[box.row : box.row_end, box.column : box.column_end]
        scales = _mapped(self.scales, np.dtype("<f4"))
        down = np.arange(box.row, box.row_end) // rows
        across = np.arange(box.column, box.column_end) // columns
        values = _values()[codes] * scales[down][:, across]
        bits = values.view("<u4")
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return bytes(np.where(np.isnan(values), 0x7FC0, rounded).astype("<u2").tobytes())


def decode_fp8(tensors: TensorSet, config: Mapping[str, Any]) -> tuple[TensorSet, tuple[str, ...]]:
    """The set with every block-scaled weight decoded and no scales left, and a note; unchanged when there are none.

    HfbenchError when scales do not fit their weight, or codes have none.
    """
    names = [name for name in tensors.tensors if name.endswith(SCALES)]
    told = config.get("quantization_config")
    block = told.get("weight_block_size") if isinstance(told, Mapping) else None
    if not names or not isinstance(block, list) or len(block) != 2 or not all(type(x) is int and x > 0 for x in block):
        return tensors, ()
    found: dict[str, Stored | Decoded] = dict(tensors.tensors)
    for name in names:
        weight = name.removesuffix(SCALES)
        codes, scales = found.get(weight), found.pop(name)
        if not isinstance(codes, Stored) or not isinstance(scales, Stored) or codes.spec.dtype != CODE:
            raise HfbenchError(f"{quoted(name)} has no {CODE} weight beside it", remedy="fetch the model again")
        asked = tuple(-(-size // step) for size, step in zip(codes.spec.shape, block, strict=True))
        if scales.spec.shape != asked or scales.spec.dtype != "F32":
            shape = list(scales.spec.shape)
            raise HfbenchError(f"{quoted(name)} is {scales.spec.dtype} {shape}, its weight asks for F32 {list(asked)}")
        found[weight] = BlockScaled(codes, scales, (block[0], block[1]))
    note = f"{counted(len(names), 'fp8 weight')} decoded to bf16 by blocks of {block[0]} x {block[1]}"
    return replace(tensors, tensors=found), (note,)


def _mapped(tensor: Stored, dtype: object) -> Array:
    np = load_numpy()
    return np.memmap(tensor.file, dtype=dtype, mode="r", offset=tensor.begin, shape=tensor.spec.shape)


@lru_cache(maxsize=1)
def _values() -> Array:
    """The value of each code, in float32."""
    return load_numpy().array(eight_bit_values(CODE), dtype="<f4")
