"""Opens files of torch.save: zip archives whose pickle is read as plain data and whose storages are found in place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.inert import StandIn, StorageRef, TensorRef, contiguous
from hfbench.convert.formats.joined import Joined
from hfbench.convert.formats.pickle_reader import MOST_BYTES, PickleError, unpickled
from hfbench.convert.formats.torch_objects import storage_of
from hfbench.convert.formats.zip_directory import Entry, ZipError, read_directory, read_exactly
from hfbench.convert.stored import Stored
from hfbench.errors import HfbenchError
from hfbench.models.dtypes import BITS
from hfbench.models.files import open_regular
from hfbench.models.problem import quoted

ZIP, TAR = b"PK\x03\x04", b"ustar"
OLD_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The number with which torch's files began before version 1.6."""

SAVE_AGAIN = "write it again with torch: torch.save(torch.load(FILE, weights_only=True), OTHER_FILE)"


@dataclass(frozen=True)
class TorchFile:
    """What torch.save was given, as plain data with `TensorRef`s, and where the storages lie."""

    path: Path
    content: object
    storages: Mapping[str, Entry]

    def stored(self, name: str, tensor: TensorRef) -> Stored | Joined:
        """A tensor of it, under a name. HfbenchError when it reaches out of its storage or its strides are not read."""
        spec = TensorSpec(name, tensor.dtype, tensor.shape)
        entry = self.storages.get(tensor.storage.key)
        if entry is None:
            raise self.wrong(f"tensor {quoted(name)} lies in a storage {quoted(tensor.storage.key)} that is missing")
        item = BITS[tensor.dtype] // 8
        _check_storage(self, name, tensor.storage, entry)
        if 0 in tensor.shape:
            return Stored(spec, self.path, entry.begin)
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride, strict=True))
        if (last + 1) * item > entry.size:
            raise self.wrong(f"tensor {quoted(name)} reaches out of its storage of {entry.size:,} bytes")
        begin = entry.begin + tensor.offset * item
        if _steps(tensor) == _plain_steps(tensor):
            return Stored(spec, self.path, begin)
        return self.view(spec, tensor, begin)

    def view(self, spec: TensorSpec, tensor: TensorRef, begin: int) -> Joined:
        """A transposed matrix, or columns cut from one, as boxes of what lies in the file."""
        if len(tensor.shape) == 2:
            rows, columns = tensor.shape
            down, across = tensor.stride
            if down == 1 and across >= rows:
                base = TensorSpec("", spec.dtype, (columns, across))
                copy = Copy("", Box(0, columns, 0, rows), spec.name, Box(0, rows, 0, columns), transposed=True)
                return Joined(spec, (copy,), {"": Stored(base, self.path, begin)})
            if across == 1 and down >= columns:
                base = TensorSpec("", spec.dtype, (rows, down))
                copy = Copy("", Box(0, rows, 0, columns), spec.name, Box(0, rows, 0, columns))
                return Joined(spec, (copy,), {"": Stored(base, self.path, begin)})
        found = f"tensor {quoted(spec.name)} of {list(tensor.shape)} is a view with strides {list(tensor.stride)}"
        raise self.wrong(found, remedy="save it with .contiguous()")

    def wrong(self, found: str, *, remedy: str = "") -> HfbenchError:
        """An error that names the file."""
        return HfbenchError(found, where=self.path, remedy=remedy)


def open_torch_file(path: Path, folder: Path | None = None) -> TorchFile:
    """Read what a file of torch.save holds; no tensor is read, and nothing in it runs.

    HfbenchError, one sentence, for files before torch 1.6, TorchScript, other byte orders and damaged ones.
    """
    with open_regular(path, folder) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        return read_archive(path, descriptor, 0, size)


def read_archive(path: Path, descriptor: int, begin: int, end: int) -> TorchFile:
    """The same of an archive that takes the bytes `begin` to `end` of an open file."""
    _refuse_others(path, descriptor, begin, end)
    try:
        entries = read_directory(descriptor, begin, end)
    except ZipError as error:
        raise HfbenchError(error.found, where=path, remedy=error.remedy) from None
    tops = {name.partition("/")[0] for name in entries}
    if len(tops) != 1:
        raise HfbenchError("is a zip file, but not one of torch.save", where=path)
    top = tops.pop()
    if f"{top}/constants.pkl" in entries:
        found = "is a TorchScript program, not a file of tensors"
        raise HfbenchError(found, where=path, remedy="save its state_dict() with torch.save")
    pickle = entries.get(f"{top}/data.pkl")
    if pickle is None:
        raise HfbenchError("is a zip file, but not one of torch.save", where=path)
    if pickle.size > MOST_BYTES:
        raise PickleError(f"holds a pickle of {pickle.size:,} bytes, more than the {MOST_BYTES:,} read", where=path)
    order = entries.get(f"{top}/byteorder")
    if order and read_exactly(descriptor, min(order.size, 16), order.begin) != b"little":
        raise HfbenchError("was written by a machine of another byte order", where=path, remedy=SAVE_AGAIN)
    raw = read_exactly(descriptor, pickle.size, pickle.begin)
    content = unpickled(raw, where=path, persistent=storage_of)
    prefix = f"{top}/data/"
    storages = {name[len(prefix) :]: entry for name, entry in entries.items() if name.startswith(prefix)}
    return TorchFile(path, content, storages)


def refuse_unread(file: TorchFile, content: object) -> None:
    """HfbenchError for a tensor that is none in memory: sparse, quantized, without data."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if isinstance(value, StandIn) and value.of.module.startswith("torch") and "tensor" in value.of.name:
            found = f"tensor {quoted(str(key))} is of a kind that is not read ({value.of})"
            raise file.wrong(found, remedy="make it a plain tensor, or remove it, and save the file again")


def tensors_in(content: object, *, deepest: int = 4) -> Iterator[tuple[str, TensorRef]]:
    """The tensors of a dictionary by name; those of inner dictionaries by their keys with dots."""
    if not isinstance(content, dict):
        return
    for key, value in content.items():
        if isinstance(value, TensorRef):
            yield str(key), value
        elif isinstance(value, dict) and deepest > 1:
            for name, tensor in tensors_in(value, deepest=deepest - 1):
                yield f"{key}.{name}", tensor


def _refuse_others(path: Path, descriptor: int, begin: int, end: int) -> None:
    head = os.pread(descriptor, min(512, end - begin), begin)
    if head.startswith(ZIP):
        return
    if OLD_MAGIC in head[:32]:
        raise HfbenchError("is a file of torch before version 1.6, which is not read", where=path, remedy=SAVE_AGAIN)
    if head[257:262] == TAR:
        raise HfbenchError(
            "is a tar file of torch before version 0.2, which is not read", where=path, remedy=SAVE_AGAIN
        )
    if head[:1] == b"\x80":
        raise HfbenchError("is a bare pickle, not a file of torch.save", where=path, remedy=SAVE_AGAIN)
    raise HfbenchError("is not a file of torch.save", where=path)


def _check_storage(file: TorchFile, name: str, storage: StorageRef, entry: Entry) -> None:
    item = BITS[storage.dtype] // 8 if storage.dtype else 1
    if storage.numel * item > entry.size:
        found = f"the storage of tensor {quoted(name)} has {entry.size:,} bytes instead of {storage.numel * item:,}"
        raise file.wrong(found, remedy="the file was cut or damaged: fetch it again")


def _steps(tensor: TensorRef) -> list[int]:
    """Strides of the dimensions that have more than one index: the others' may be anything."""
    return [step for size, step in zip(tensor.shape, tensor.stride, strict=True) if size != 1]


def _plain_steps(tensor: TensorRef) -> list[int]:
    return [step for size, step in zip(tensor.shape, contiguous(tensor.shape), strict=True) if size != 1]
