"""Which configuration a launch takes: the tuned one where a file has it, else the first that can serve the problem."""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.gpu.kernels.declaration import TORCH_DTYPES, Config, Kernel
from hfbench.gpu.kernels.loading import LONGEST, read
from hfbench.gpu.kernels.tuned import Key, Table, best, bucket_of, load_tuned, source_hash


class NoConfiguration(HfbenchError):
    """No configuration of a kernel can serve a problem."""


class Chooser:
    """Chooses for one kernel. The file of tuned configurations is read once; a damaged one is a warning, then none."""

    def __init__(self, kernel: Kernel, source: Path, tuned: Path | None) -> None:
        self._kernel, self._source, self._path = kernel, source, tuned
        self._table: Table | None = None
        self._hash = ""

    def choose(self, given: Mapping[str, Any], shape: Mapping[str, int] | None, capability: str) -> Config:
        """The configuration for these arguments of a launch, of that shape by axis, on that compute capability.

        NoConfiguration when none applies.
        """
        tuned = self._tuned(given, shape, capability) if shape is not None and capability else None
        for config in (tuned, *self._kernel.configs):
            if config and self._kernel.applies(given, config.constants):
                return config
        raise NoConfiguration(
            "no configuration can serve a problem of this size",
            where=self._kernel.name,
            remedy="add one to configs for which applies is true",
        )

    def _tuned(self, given: Mapping[str, Any], shape: Mapping[str, int], capability: str) -> Config | None:
        if not (table := self._loaded()):
            return None
        import triton

        key = Key(
            kernel=self._kernel.name,
            source=self._hash,
            triton=triton.__version__,
            capability=capability,
            dtype=element_type(self._kernel, given),
            bucket=bucket_of(shape),
        )
        if (choice := best(table, key)) is None:
            return None
        return Config(
            constants=choice.constants,
            num_warps=choice.num_warps,
            num_stages=choice.num_stages,
            options=choice.options,
        )

    def _loaded(self) -> Table:
        if self._table is None:
            self._table = {}
            if self._path is not None:
                try:
                    self._table = load_tuned(self._path)
                    self._hash = source_hash(read(self._source).digest, neighbours(self._source))
                except HfbenchError as error:
                    self._table = {}
                    warnings.warn(f"{error} (until then {self._kernel.name} runs untuned)", stacklevel=2)
        return self._table


def element_type(kernel: Kernel, given: Mapping[str, Any]) -> str:
    """The name of the element type that `*T` stands for in these arguments; empty where nothing is of type T."""
    names = {torch: name for name, torch in TORCH_DTYPES.items()}
    for name, spelled in kernel.signature.items():
        if spelled.partition(":")[0] == "*T":
            dtype = str(given[name].dtype).removeprefix("torch.")
            return names.get(dtype, dtype[:LONGEST])
    return ""


def neighbours(path: Path) -> dict[str, str]:
    """SHA-256 of the loaded modules below the file's folder that it imports, and those they import, by path.

    They are what `loading.load` tells of a fresh process, found in one that has loaded others too.
    """
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        for file in map(Path, _imported(waiting.pop(), path.parent)):
            if str(file) not in found and file != path:
                found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
                waiting.append(file)
    return found


def _imported(path: Path, folder: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for stop in range(1, len(parts) + 1):  # a package is loaded before what it holds
                file = getattr(sys.modules.get(".".join(parts[:stop])), "__file__", None)
                if not isinstance(file, str) or "site-packages" in file or "dist-packages" in file:
                    continue
                if Path(file).is_relative_to(folder) and not Path(file).is_relative_to(sys.prefix):
                    yield file
