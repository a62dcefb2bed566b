"""Opens torch_dist folders: .metadata tells the chunks of each tensor, which are torch files inside of others."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hfbench.convert.boxes import Shape, TensorSpec
from hfbench.convert.formats.inert import StandIn, TensorRef
from hfbench.convert.formats.joined import Joined, joined
from hfbench.convert.formats.pickle_reader import MOST_BYTES, unpickled
from hfbench.convert.formats.torch_file import read_archive
from hfbench.convert.formats.torch_objects import dtype_named
from hfbench.convert.stored import Stored
from hfbench.errors import HfbenchError
from hfbench.models.files import open_regular, read_bytes
from hfbench.models.problem import quoted

METADATA = ".metadata"

MOST_OPEN = 16
"""Files kept open while chunks are looked up."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a chunk is stored: a file of the folder, and its stretch of bytes there."""

    file: str
    begin: int
    length: int


def open_torch_dist(folder: Path) -> dict[str, Stored | Joined]:
    """The tensors of an iteration's folder by name; bytes objects, as `_extra_state`, are left out.

    HfbenchError, one sentence, when .metadata is damaged or a chunk is missing, compressed or not where it should be.
    """
    where = folder / METADATA
    content = unpickled(read_bytes(where, MOST_BYTES, folder), where=where)
    state = content.attributes() if isinstance(content, StandIn) else {}
    tensors, stored = state.get("state_dict_metadata"), state.get("storage_data")
    if not isinstance(tensors, dict) or not isinstance(stored, dict):
        raise HfbenchError("is not the metadata of torch.distributed.checkpoint", where=where)
    places = _places(stored, where)
    opener = _Opener(folder)
    try:
        return {
            name: _opened(name, entry, places, opener)
            for name, entry in tensors.items()
            if isinstance(name, str) and isinstance(entry, StandIn) and entry.of.name == "TensorStorageMetadata"
        }
    finally:
        opener.close()


def _places(stored: Mapping[object, object], where: Path) -> dict[tuple[str, Shape], _Place]:
    found: dict[tuple[str, Shape], _Place] = {}
    for key, value in stored.items():
        index = key.attributes() if isinstance(key, StandIn) else {}
        info = value.attributes() if isinstance(value, StandIn) else {}
        match (
            index.get("fqn"),
            index.get("offset"),
            info.get("relative_path"),
            info.get("offset"),
            info.get("length"),
        ):
            case (str(name), tuple(offset), str(file), int(begin), int(length)):
                if info.get("transform_descriptors"):
                    raise HfbenchError(f"chunks of {quoted(name)} are compressed, which is not read", where=where)
                found[name, _shape(offset, name, where)] = _Place(file, begin, length)
            case (str(), None, *_):
                continue  # bytes objects
            case _:
                raise HfbenchError("says of something stored neither its name nor its place", where=where)
    return found


def _opened(name: str, entry: StandIn, places: Mapping[tuple[str, Shape], _Place], opener: _Opener) -> Stored | Joined:
    where = opener.folder / METADATA
    state = entry.attributes()
    chunks = state.get("chunks")
    if not isinstance(chunks, list) or not chunks:
        raise HfbenchError(f"tensor {quoted(name)} has no chunks", where=where)
    spec = TensorSpec(name, _dtype(state.get("properties"), name, where), _shape(state.get("size"), name, where))
    found: list[tuple[Shape, Stored]] = []
    held = 0
    for chunk in chunks:
        parts = chunk.attributes() if isinstance(chunk, StandIn) else {}
        offsets, sizes = (_shape(parts.get(key), name, where) for key in ("offsets", "sizes"))
        place = places.get((name, offsets))
        if place is None:
            raise HfbenchError(f"the chunk of {quoted(name)} at {list(offsets)} is stored nowhere", where=where)
        stored = opener.chunk(place, TensorSpec(name, spec.dtype, sizes))
        found.append((offsets, stored))
        held += stored.spec.rows * stored.spec.columns
    if held != spec.rows * spec.columns:
        raise HfbenchError(f"the chunks of {quoted(name)} hold {held:,} of its elements", where=where)
    if len(found) == 1:
        return Stored(spec, found[0][1].file, found[0][1].begin)
    try:
        return joined(spec, found)
    except ValueError as error:
        raise HfbenchError(f"tensor {quoted(name)}: {error}", where=where) from None


class _Opener:
    """Finds the bytes of chunks; keeps the files open that it looks into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, int] = {}
        self.sizes: dict[str, int] = defaultdict(int)

    def chunk(self, place: _Place, spec: TensorSpec) -> Stored:
        path, descriptor = self.folder / place.file, self.descriptor(place.file)
        end = place.begin + place.length
        if not 0 <= place.begin < end <= self.sizes[place.file]:
            found = f"a chunk of {quoted(spec.name)} is said to lie at byte {place.begin:,}, outside of the file"
            raise HfbenchError(found, where=path, remedy="the file was cut or is another: fetch it again")
        archive = read_archive(path, descriptor, place.begin, end)
        tensor = archive.content
        if not isinstance(tensor, TensorRef) or tensor.shape != spec.shape or tensor.dtype != spec.dtype:
            raise HfbenchError(f"the chunk of {quoted(spec.name)} is not what .metadata says", where=path)
        stored = archive.stored(spec.name, tensor)
        if not isinstance(stored, Stored):
            raise HfbenchError(f"a chunk of {quoted(spec.name)} is not stored row after row", where=path)
        return stored

    def descriptor(self, name: str) -> int:
        if name not in self.files:
            if "/" in name or name in ("", ".", ".."):
                raise HfbenchError(f"names {quoted(name)} as a file", where=self.folder / METADATA)
            if len(self.files) == MOST_OPEN:
                os.close(self.files.pop(next(iter(self.files))))
            with open_regular(self.folder / name, self.folder) as file:
                self.files[name] = os.dup(file.fileno())
            self.sizes[name] = os.fstat(self.files[name]).st_size
        return self.files[name]

    def close(self) -> None:
        for descriptor in self.files.values():
            os.close(descriptor)


def _dtype(properties: object, name: str, where: Path) -> str:
    state = properties.state if isinstance(properties, StandIn) else None
    found = state[0] if isinstance(state, tuple) and state else None
    if isinstance(properties, StandIn) and found is None:
        found = properties.attributes().get("dtype")
    try:
        return dtype_named(found)
    except ValueError as error:
        raise HfbenchError(f"tensor {quoted(name)} has {error}", where=where) from None


def _shape(found: object, name: str, where: Path) -> Shape:
    if isinstance(found, tuple) and all(type(each) is int and 0 <= each < 2**48 for each in found):
        return found
    raise HfbenchError(f"tensor {quoted(name)} has no shape", where=where)
