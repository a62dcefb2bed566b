"""Tensors where they lie: a contiguous stretch of a file each, or one that is decoded while it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from hfbench.convert.boxes import Box, TensorSpec


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in row-major order in a file, from byte `begin` of it on."""

    spec: TensorSpec
    file: Path
    begin: int


class Decoded(Protocol):
    """A tensor whose elements are worked out while it is read: quantized blocks of GGUF, fp8 with its scales."""

    @property
    def spec(self) -> TensorSpec:
        """Name, dtype and shape of what reading gives."""
        ...

    def read(self, box: Box) -> bytes | bytearray | memoryview:
        """The elements of a box, row after row without holes, little-endian in the dtype of `spec`."""
        ...


@runtime_checkable
class Scaled(Protocol):
    """A decoded tensor whose blocks are multiplied by numbers that are stored beside it."""

    @property
    def scales(self) -> Stored:
        """These numbers."""
        ...

    def wrong_scales(self) -> Mapping[str, int]:
        """How many of them are `nan` and `inf`, which makes their blocks so."""
        ...


@dataclass(frozen=True, kw_only=True)
class TensorSet:
    """The tensors of a checkpoint by name, whatever its format.

    Tensors of a Megatron checkpoint in several files are named `RANK:NAME`, as in
    `mp_rank_00_001:decoder.final_layernorm.weight`; those of Hugging Face and torch_dist folders stand alone.
    """

    folder: Path
    tensors: Mapping[str, Stored | Decoded]
