"""The tensors of a Megatron checkpoint put together again, by the layout rules of Megatron and none of the converter's.

Runs in a child process: torch. Weights come as float32, one layer's at a time.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from hfbench.convert.boxes import Box
from hfbench.convert.stored import Decoded, Stored, TensorSet
from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.errors import HfbenchError

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
ALIASES = {
    "input_layernorm": ("self_attention.linear_qkv.layer_norm",),
    "pre_mlp_layernorm": ("mlp.linear_fc1.layer_norm",),
    "self_attention.q_layernorm": ("self_attention.linear_q_up_proj.layer_norm",),
    "self_attention.kv_layernorm": ("self_attention.linear_kv_up_proj.layer_norm",),
}
"""Modules of the local spec and the prefix their parameters have in Transformer Engine's fused modules."""


class MissingTensor(HfbenchError):
    """A tensor that Megatron would ask for is not in the checkpoint."""


class Bytes:
    """Reads rows of the tensors of a set, each file mapped once."""

    def __init__(self, tensors: TensorSet) -> None:
        self._tensors = tensors.tensors
        self._maps: dict[Path, mmap.mmap] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def names(self) -> Iterator[str]:
        """All names."""
        return iter(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self._tensors[name].spec.shape

    def read(self, name: str, first: tuple[int, ...] = ()) -> torch.Tensor:
        """A tensor as float32, or its part at the given places of the leading dimensions."""
        stored = self._tensors[name]
        shape, rows = stored.spec.shape, stored.spec.rows
        begin, count = 0, rows
        for place, size in zip(first, shape, strict=False):
            count //= size
            begin += place * count
        return self._rows(stored, begin, begin + count).reshape(shape[len(first) :]).float()

    def _rows(self, stored: Stored | Decoded, row: int, row_end: int) -> torch.Tensor:
        spec = stored.spec
        if spec.dtype not in DTYPES:
            raise HfbenchError(f"{spec.name} is {spec.dtype}, which a forward pass cannot use")
        dtype, count = DTYPES[spec.dtype], (row_end - row) * spec.columns
        if count == 0:
            return torch.empty(0, dtype=dtype)
        if isinstance(stored, Stored):
            begin = stored.begin + row * spec.columns * dtype.itemsize
            return torch.frombuffer(self._mapped(stored.file), dtype=dtype, count=count, offset=begin)
        data = stored.read(Box(row, row_end, 0, spec.columns))
        return torch.frombuffer(bytearray(data), dtype=dtype, count=count)

    def _mapped(self, path: Path) -> mmap.mmap:
        if path not in self._maps:
            with path.open("rb") as file:  # copy on write: torch warns about memory it could not write to
                self._maps[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return self._maps[path]


class Shards:
    """A legacy checkpoint, one file a rank: tensors gathered over tensor and expert ranks."""

    def __init__(self, tensors: TensorSet, args: MegatronArgs) -> None:
        self.args, self.bytes = args, Bytes(tensors)
        self.unequal: set[str] = set()
        """Tensors seen so far that should be alike on all ranks of a stage and are not."""
        self._stages = args.stages()

    def rank(self, tp: int, stage: int, ep: int = 0) -> str:
        """The folder name of a rank."""
        name = f"mp_rank_{tp:02d}"
        name += f"_{stage:03d}" if self.args.pp > 1 else ""
        return name + (f"_{ep:03d}" if self.args.ep > 1 else "")

    def stage_of(self, layer: int) -> int:
        """The pipeline stage of a layer."""
        return next(stage for stage, (begin, end) in enumerate(self._stages) if begin <= layer < end)

    def layer(self, layer: int) -> Part:
        """The tensors of a layer, counted from 0 over all stages."""
        stage = self.stage_of(layer)
        return RankPart(self, stage, f"decoder.layers.{layer - self._stages[stage][0]}.")

    def first(self) -> Part:
        """What lies before the first layer."""
        return RankPart(self, 0, "")

    def last(self) -> Part:
        """What lies behind the last layer."""
        return RankPart(self, self.args.pp - 1, "")


class Part:
    """Tensors under one prefix, by their names in the local spec, put together over ranks."""

    prefix: str

    def whole(self, name: str) -> torch.Tensor:
        """A tensor that every rank has alike."""
        raise NotImplementedError

    def rows(self, name: str) -> torch.Tensor:
        """A tensor whose rows are spread over the tensor ranks."""
        raise NotImplementedError

    def columns(self, name: str) -> torch.Tensor:
        """A tensor whose columns are spread over the tensor ranks."""
        raise NotImplementedError

    def halves(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Gate and up, each spread over the tensor ranks."""
        raise NotImplementedError

    def has(self, name: str) -> bool:
        """Whether the first rank has such a tensor."""
        raise NotImplementedError

    def expert(self, number: int) -> Part:
        """The tensors of an expert, counted over all expert ranks, as `linear_fc1.weight` and `linear_fc2.weight`."""
        raise NotImplementedError

    def full_name(self, name: str) -> str:
        """The tensor's name in the checkpoint, for sentences."""
        return self.prefix + name


class RankPart(Part):
    """A part of a legacy checkpoint."""

    def __init__(self, shards: Shards, stage: int, prefix: str, *, ep: int = 0, expert: int | None = None) -> None:
        self._shards, self._stage, self.prefix, self._ep, self._expert = shards, stage, prefix, ep, expert

    def whole(self, name: str) -> torch.Tensor:
        args, found = self._shards.args, self._read(name, 0)
        for ep, tp in itertools.product(range(args.ep), range(args.tp)):
            part = RankPart(self._shards, self._stage, self.prefix, ep=ep)
            if (ep, tp) != (self._ep, 0) and not torch.equal(part._read(name, tp), found):
                self._shards.unequal.add(self.full_name(name))
        return found

    def rows(self, name: str) -> torch.Tensor:
        return torch.cat([self._read(name, tp) for tp in range(self._shards.args.tp)], 0)

    def columns(self, name: str) -> torch.Tensor:
        return torch.cat([self._read(name, tp) for tp in range(self._shards.args.tp)], -1)

    def halves(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = [self._read(name, tp).chunk(2, 0) for tp in range(self._shards.args.tp)]
        return torch.cat([gate for gate, _ in pairs], 0), torch.cat([up for _, up in pairs], 0)

    def has(self, name: str) -> bool:
        return any(each in self._shards.bytes for each in self._spellings(name, 0))

    def expert(self, number: int) -> Part:
        args = self._shards.args
        each = int(args.get("num_experts")) // args.ep
        return RankPart(self._shards, self._stage, self.prefix, ep=number // each, expert=number % each)

    def full_name(self, name: str) -> str:
        return f"{self._shards.rank(0, self._stage, self._ep)}:{self.prefix}{name}"

    def _spellings(self, name: str, tp: int) -> list[str]:
        rank = self._shards.rank(tp, self._stage, self._ep) + ":" + self.prefix
        if self._expert is not None:  # one expert a module, or Transformer Engine's grouped linear
            return [f"{rank}mlp.experts.local_experts.{self._expert}.{name}", f"{rank}mlp.experts.{name}{self._expert}"]
        return [rank + each for each in spellings(name)]

    def _read(self, name: str, tp: int) -> torch.Tensor:
        known = self._spellings(name, tp)
        found = next((each for each in known if each in self._shards.bytes), None)
        if found is None:
            raise MissingTensor(f"the checkpoint has no tensor {known[0]}")
        return self._shards.bytes.read(found)


class DistributedShards(Shards):
    """A torch_dist checkpoint: whole tensors by canonical names, those of layers stacked, or one key a layer."""

    def layer(self, layer: int) -> Part:
        stacked = not any(name.startswith("decoder.layers.0.") for name in self.bytes.names())
        if stacked:
            return StackedPart(self, "decoder.layers.", (layer,))
        return StackedPart(self, f"decoder.layers.{layer}.", ())

    def first(self) -> Part:
        return StackedPart(self, "", ())

    last = first


class StackedPart(Part):
    """A part of a torch_dist checkpoint; `places` are those of the leading dimensions: the layer, and the expert."""

    def __init__(self, shards: Shards, prefix: str, places: tuple[int, ...]) -> None:
        self._shards, self.prefix, self._places = shards, prefix, places

    def whole(self, name: str) -> torch.Tensor:
        known = [self.prefix + each for each in spellings(name)]
        found = next((each for each in known if each in self._shards.bytes), None)
        if found is None:
            raise MissingTensor(f"the checkpoint has no tensor {known[0]}")
        return self._shards.bytes.read(found, self._places)

    rows = columns = whole

    def halves(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        gate, up = self.whole(name).chunk(2, 0)
        return gate, up

    def has(self, name: str) -> bool:
        return any(self.prefix + each in self._shards.bytes for each in spellings(name))

    def expert(self, number: int) -> Part:
        return StackedPart(self._shards, f"{self.prefix}mlp.experts.experts.", (*self._places, number))


def spellings(name: str) -> list[str]:
    """A name of the local spec and the ones that Transformer Engine's modules give the same tensor."""
    module, _, parameter = name.rpartition(".")
    return [name, *(f"{each}_{parameter}" for each in ALIASES.get(module, ()))]


def open_shards(tensors: TensorSet, args: Mapping[str, Any]) -> Shards:
    """The reader for a checkpoint's format, told by the names of its tensors."""
    legacy = any(":" in name for name in tensors.tensors)
    return (Shards if legacy else DistributedShards)(tensors, MegatronArgs(args))
