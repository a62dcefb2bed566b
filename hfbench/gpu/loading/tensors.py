"""What each loader does in its process: files to tensors on a device, timed until every byte is there."""

from __future__ import annotations

import hashlib
import pickle  # for the name of an error only: nothing is unpickled by it
import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.gpu.loading.ahead import read_files
from hfbench.gpu.loading.page_cache import read_through
from hfbench.text import clip

PAGE = 4096
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
"""How torch names a class or function that a pickle asks for."""
Tensors = dict[str, Any]
Load = Callable[[list[Path], str], Tensors]


def timed_load(load: Load, paths: list[Path], device: str) -> tuple[float, Tensors]:
    """Seconds from asking to the last byte being on the device, and the tensors.

    A mapping alone moves nothing: on the CPU one byte of every page is read, of every loader alike. On a GPU the
    copies are waited for.
    """
    began = time.perf_counter()
    tensors = load(paths, device)
    arrive(tensors, device)
    return time.perf_counter() - began, tensors


def arrive(tensors: Tensors, device: str) -> None:
    """Wait until every byte is on the device."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)
        return
    for tensor in tensors.values():
        as_bytes(tensor)[::PAGE].sum()


def as_bytes(tensor: Any) -> Any:
    """A tensor's bytes in one row, where it lies."""
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def digest(tensors: Mapping[str, Any]) -> str:
    """sha256 over names and bytes of all tensors, in the order of names."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        data = as_bytes(tensors[name]).cpu().numpy()
        add(found, name, len(data))
        found.update(data)
    return found.hexdigest()


def add(found: Any, name: str, count: int) -> None:
    """What a tensor adds to a digest before its bytes: its name and their number."""
    found.update(f"{name}\0{count}\0".encode())


def file_digest(paths: list[Path]) -> str:
    """The digest that safetensors files must give, by plain reads that share nothing with any loader.

    HfbenchError for a file that is none.
    """
    from hfbench.models.header_rows import HeaderError
    from hfbench.models.safetensors import read_header

    where: dict[str, tuple[Path, int, int]] = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                header = read_header(file, path.stat().st_size)
        except HeaderError as error:  # which knows no name
            raise HfbenchError(error.found, where=path, remedy=error.remedy) from None
        for name, kind, begin in zip(header.names, header.kind_ids, header.begins, strict=True):
            where[name] = (path, header.header_bytes + begin, header.kinds[kind][2])
    found = hashlib.sha256()
    for name in sorted(where):
        path, begin, count = where[name]
        add(found, name, count)
        for block in _blocks(path, begin, count):
            found.update(block)
    return found.hexdigest()


def _blocks(path: Path, begin: int, count: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(begin)
        while count:
            block = file.read(min(count, 2**24))
            if not block:
                raise HfbenchError("ends before its last tensor", where=path, remedy="fetch the file again")
            count -= len(block)
            yield block


def loader_function(id: str) -> Load:
    """The function of a loader, with what it needs imported; HfbenchError where a library lacks what it takes."""
    return _PREPARE[id]()


def _mmap() -> Load:
    from safetensors.torch import load_file

    return lambda paths, device: _merged(load_file(path, device=device) for path in paths)


def _pread() -> Load:
    import inspect

    import safetensors
    from safetensors.torch import load_file

    if "backend" not in inspect.signature(load_file).parameters:
        raise HfbenchError(f"safetensors {safetensors.__version__} has no backend to choose")
    return lambda paths, device: _merged(load_file(path, device=device, backend="pread") for path in paths)


def _read() -> Load:
    from safetensors.torch import load

    def whole(paths: list[Path], device: str) -> Tensors:
        return _moved(_merged(load(path.read_bytes()) for path in paths), device)

    return whole


def _prefetch() -> Load:
    from safetensors.torch import load_file

    def behind(paths: list[Path], device: str) -> Tensors:
        tensors: Tensors = {}
        for path, done in zip(paths, read_files(paths).read, strict=True):
            done.wait()
            tensors.update(load_file(path, device=device))
        return tensors

    return behind


def _torch_load(*, mmap: bool) -> Load:
    import torch  # noqa: F401 - imported before the clock runs

    def load(paths: list[Path], device: str) -> Tensors:
        return _moved(_merged(_only_tensors(_unpickled(path, mmap)) for path in paths), device)

    return load


def _unpickled(path: Path, mmap: bool) -> Any:
    """What a pickle holds. What torch says of one that it refuses is advice to let the file run its code."""
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        if found := _GLOBAL.search(str(error)):
            name = clip(found[1], 80)
            raise HfbenchError(f"{path.name} holds {name}, which is no tensor: refused, and not run") from None
        raise HfbenchError(f"{path.name} is no pickle of tensors") from None
    except EOFError:
        raise HfbenchError(f"{path.name} is empty or ends too early") from None


def _fastsafetensors() -> Load:
    library = import_module("fastsafetensors")

    def load(paths: list[Path], device: str) -> Tensors:
        loader = library.SafeTensorsFileLoader(library.SingleGroup(), device, nogds=True)
        loader.add_filenames({0: [str(path) for path in paths]})
        buffer = loader.copy_files_to_device()
        tensors = {name: buffer.get_tensor(name) for name in buffer.key_to_rank_lidx}
        _KEPT.extend((loader, buffer))  # the tensors are views of what it owns
        return tensors

    return load


def _runai() -> Load:
    library = import_module("runai_model_streamer")

    def load(paths: list[Path], device: str) -> Tensors:
        with library.SafetensorsStreamer() as streamer:
            streamer.stream_files([str(path) for path in paths], device=device)
            return {name: tensor.to(device) for name, tensor in streamer.get_tensors()}

    return load


def _instanttensor() -> Load:
    library = import_module("instanttensor")

    def load(paths: list[Path], device: str) -> Tensors:
        index = int(device.partition(":")[2])
        with library.safe_open([str(path) for path in paths], framework="pt", device=index) as file:
            return dict(file.tensors())

    return load


def _plain() -> Load:
    def load(paths: list[Path], device: str) -> Tensors:
        for path in paths:
            read_through(path)
        return {}

    return load


_KEPT: list[Any] = []
_PREPARE: dict[str, Callable[[], Load]] = {
    "plain": _plain,
    "safetensors-mmap": _mmap,
    "safetensors-pread": _pread,
    "safetensors-read": _read,
    "safetensors-prefetch": _prefetch,
    "fastsafetensors": _fastsafetensors,
    "runai-streamer": _runai,
    "instanttensor": _instanttensor,
    "torch-load": lambda: _torch_load(mmap=False),
    "torch-load-mmap": lambda: _torch_load(mmap=True),
}
"""What imports and returns a loader, by its id."""


def _merged(parts: Iterator[Tensors]) -> Tensors:
    tensors: Tensors = {}
    for part in parts:
        tensors.update(part)
    return tensors


def _moved(tensors: Tensors, device: str) -> Tensors:
    return tensors if device == "cpu" else {name: tensor.to(device) for name, tensor in tensors.items()}


def _only_tensors(data: Any) -> Tensors:
    import torch

    if not isinstance(data, Mapping):
        raise HfbenchError(f"holds a {type(data).__name__}, a dictionary of tensors was expected")
    return {str(name): value for name, value in data.items() if isinstance(value, torch.Tensor)}
