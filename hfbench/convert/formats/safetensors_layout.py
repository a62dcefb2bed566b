"""Safetensors files laid out: one, or shards of a chosen size with their index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.layout import FileLayout, Piece, bytes_of
from hfbench.models.dtypes import BITS
from hfbench.models.index import SAFETENSORS_INDEX
from hfbench.models.weights import SINGLE

SHARD_BYTES = 5_000_000_000
"""What transformers writes into one file by default."""

ALIGNMENT = 8
"""The header is padded with spaces so that data begins at a multiple of this."""

METADATA = {"format": "pt"}
RESERVED = "__metadata__"


def lay_out_safetensors(specs: Sequence[TensorSpec], *, most_bytes: int = SHARD_BYTES) -> list[FileLayout]:
    """The files of these tensors, in their order, at most `most_bytes` of tensors each (a larger tensor gets its own).

    One file is model.safetensors; several are model-00001-of-0000N.safetensors and the index, which comes last.
    """
    shards = _shards(specs, most_bytes)
    if len(shards) <= 1:
        return [lay_out_shard(SINGLE, specs)]
    stem, width = SINGLE.removesuffix(".safetensors"), max(5, len(str(len(shards))))
    names = [f"{stem}-{number:0{width}}-of-{len(shards):0{width}}.safetensors" for number in range(1, len(shards) + 1)]
    weight_map = {spec.name: name for name, shard in zip(names, shards, strict=True) for spec in shard}
    index = {"metadata": {"total_size": sum(map(bytes_of, specs))}, "weight_map": dict(sorted(weight_map.items()))}
    text = json.dumps(index, indent=2).encode() + b"\n"
    layouts = [lay_out_shard(name, shard) for name, shard in zip(names, shards, strict=True)]
    return [*layouts, FileLayout.plain(SAFETENSORS_INDEX, text)]


def lay_out_shard(path: str, specs: Sequence[TensorSpec], metadata: Mapping[str, str] = METADATA) -> FileLayout:
    """One file; tensors of wider elements come first, so that each begins at a multiple of its element's size.

    ValueError for a name that the format keeps for itself, and for elements that fill no whole bytes.
    """
    if any(spec.name == RESERVED for spec in specs):
        raise ValueError(f"a tensor is called {RESERVED}, which safetensors keeps for other things")
    table: dict[str, object] = {RESERVED: dict(metadata)} if metadata else {}
    begins, at = dict[str, int](), 0
    for spec in sorted(specs, key=lambda spec: -BITS[spec.dtype]):
        size = bytes_of(spec)
        table[spec.name] = {"dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [at, at + size]}
        begins[spec.name] = at
        at += size
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    header = len(text).to_bytes(8, "little") + text
    pieces = tuple(Piece(spec.name, 0, spec.rows, len(header) + begins[spec.name]) for spec in specs)
    return FileLayout(path=path, size=len(header) + at, pieces=pieces, fixed=((0, header),))


def _shards(specs: Sequence[TensorSpec], most_bytes: int) -> list[list[TensorSpec]]:
    shards: list[list[TensorSpec]] = []
    left = 0
    for spec in specs:
        size = bytes_of(spec)
        if not shards or size > left:
            shards.append([])
            left = max(most_bytes, size)
        shards[-1].append(spec)
        left -= size
    return shards
