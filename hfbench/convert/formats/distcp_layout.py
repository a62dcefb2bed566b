"""torch_dist folders, which torch.distributed.checkpoint reads, laid out before a tensor is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.inert import TORCH_DTYPES, Global, StandIn
from hfbench.convert.formats.layout import FileLayout, Piece
from hfbench.convert.formats.pickle_writer import Reduced, pickled
from hfbench.convert.formats.pt_layout import archive, pt_bytes
from hfbench.convert.formats.zip_layout import lay_out_zip

FILE_BYTES = 5_000_000_000
"""Of one .distcp file: a loader reads several at once."""

METADATA = {
    "sharded_backend": "torch_dist",
    "sharded_backend_version": 1,
    "common_backend": "torch",
    "common_backend_version": 1,
}
"""metadata.json, by which megatron-core knows the format."""

MODULE, STORAGE_MODULE = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
SIZE, STRIDED = Global("torch", "Size"), Global("torch.serialization", "_get_layout")

Chunk = tuple[tuple[int, ...], tuple[int, ...]]
"""Offsets and sizes of a part of a tensor that is stored by itself."""


def lay_out_torch_dist(
    folder: str,
    specs: Sequence[TensorSpec],
    common: Mapping[str, object],
    *,
    stacked: Mapping[str, int] | None = None,
    most_bytes: int = FILE_BYTES,
) -> list[FileLayout]:
    """The files of an iteration's folder: several .distcp, .metadata, common.pt and metadata.json.

    `stacked` says how many leading dimensions of a tensor are stored one by one: with 1 a tensor [L, ...] of L layers
    is L parts, so that a loader that wants one of them does not read all. ValueError as of `lay_out_pt`.
    """
    where: dict[tuple[str, Chunk], tuple[str, int, int]] = {}
    data = _data_files(specs, stacked or {}, most_bytes, where)
    metadata = pickled(_metadata(specs, stacked or {}, where))
    beside = (
        FileLayout.plain(".metadata", metadata),
        pt_bytes("common.pt", dict(common)),
        FileLayout.plain("metadata.json", json.dumps(METADATA).encode()),
    )
    prefix = f"{folder}/" if folder else ""
    return [
        FileLayout(path=prefix + each.path, size=each.size, pieces=each.pieces, fixed=each.fixed)
        for each in (*data, *beside)
    ]


def chunks(spec: TensorSpec, stacked: int) -> Iterator[Chunk]:
    """The parts of a tensor: each index of its `stacked` leading dimensions by itself, whole in the others."""
    if stacked >= len(spec.shape) and stacked:
        raise ValueError(f"{spec.name}: {stacked} leading dimensions of {list(spec.shape)} cannot be stacked")
    rest = spec.shape[stacked:]
    for index in product(*map(range, spec.shape[:stacked])):
        yield (*index, *(0 for _ in rest)), (*(1 for _ in index), *rest)


def _data_files(
    specs: Sequence[TensorSpec],
    stacked: Mapping[str, int],
    most_bytes: int,
    where: dict[tuple[str, Chunk], tuple[str, int, int]],
) -> list[FileLayout]:
    """The .distcp files; `where` learns the file, the first byte and the bytes of every chunk."""
    files: list[FileLayout] = []
    pieces: list[Piece] = []
    fixed: list[tuple[int, bytes]] = []
    at = 0

    def close() -> None:
        nonlocal at
        files.append(FileLayout(path=f"__0_{len(files)}.distcp", size=at, pieces=tuple(pieces), fixed=tuple(fixed)))
        pieces.clear()
        fixed.clear()
        at = 0

    for spec in specs:
        for number, chunk in enumerate(chunks(spec, stacked.get(spec.name, 0))):
            part = TensorSpec(spec.name, spec.dtype, chunk[1])
            slots, first = archive(part, [part])
            zipped = lay_out_zip(slots, at)
            if at and zipped.end > most_bytes:
                close()
                zipped = lay_out_zip(slots, at)
            placed, row = zipped.placed[first], number * part.rows  # an only part has the number 0
            pieces.append(Piece(spec.name, row, row + part.rows, placed.begin, placed.crc32_at))
            fixed += zipped.fixed
            where[spec.name, chunk] = (f"__0_{len(files)}.distcp", at, zipped.end - at)
            at = zipped.end
    if at or not files:
        close()
    return files


def _metadata(
    specs: Sequence[TensorSpec],
    stacked: Mapping[str, int],
    where: Mapping[tuple[str, Chunk], tuple[str, int, int]],
) -> StandIn:
    tensors: dict[str, object] = {}
    stored: dict[object, object] = {}
    for spec in specs:
        parts = list(chunks(spec, stacked.get(spec.name, 0)))
        shown = [
            _object("ChunkStorageMetadata", offsets=_size(offsets), sizes=_size(sizes)) for offsets, sizes in parts
        ]
        tensors[spec.name] = _object(
            "TensorStorageMetadata", properties=_properties(spec.dtype), size=_size(spec.shape), chunks=shown
        )
        for number, part in enumerate(parts):
            file, begin, length = where[spec.name, part]
            index = _object("MetadataIndex", fqn=spec.name, offset=_size(part[0]), index=number)
            state = {"relative_path": file, "offset": begin, "length": length}
            stored[index] = StandIn(Global(STORAGE_MODULE, "_StorageInfo"), (), state)
    return _object(
        "Metadata",
        state_dict_metadata=tensors,
        planner_data=None,
        storage_data=stored,
        storage_meta=None,
        version="1.0.0",
    )


def _properties(dtype: str) -> StandIn:
    if dtype not in TORCH_DTYPES:
        raise ValueError(f"torch has no dtype for {dtype}")
    layout = Reduced(STRIDED, ("torch.strided",))
    contiguous = Reduced(Global(MODULE, "_MEM_FORMAT_ENCODING"), (0,))
    state = (Global("torch", TORCH_DTYPES[dtype]), layout, False, contiguous, False)
    return StandIn(Global(MODULE, "TensorProperties"), (), state)


def _object(name: str, **state: object) -> StandIn:
    return StandIn(Global(MODULE, name), (), state)


def _size(shape: Sequence[int]) -> StandIn:
    return Reduced(SIZE, (tuple(shape),))
