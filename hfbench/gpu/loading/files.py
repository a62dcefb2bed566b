"""The weight files of a model folder that loaders can be measured on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.gpu.loading.loaders import Format
from hfbench.models.remote_mark import refuse_headers_only
from hfbench.models.weights import choose_weights

PICKLES = (".bin", ".pt", ".pth")
IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
"""File systems that have no disk behind them."""
MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, kw_only=True)
class WeightFiles:
    """Files by format, links followed. `filesystem` is the kind of the one they lie on, or `unknown`."""

    safetensors: tuple[Path, ...]
    pickles: tuple[Path, ...]
    filesystem: str

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats there are files of."""
        found: list[Format] = []
        if self.safetensors:
            found.append("safetensors")
        if self.pickles:
            found.append("pickle")
        return tuple(found)

    @property
    def in_memory(self) -> bool:
        """True when the files are never anywhere but in memory."""
        return self.filesystem in IN_MEMORY

    @property
    def bytes(self) -> int:
        """Bytes of the files that plain reading reads."""
        return sum(each.stat().st_size for each in self.of("any"))

    def of(self, format: Format) -> tuple[Path, ...]:
        """The files of a format; of any, the safetensors files where there are some."""
        if format == "safetensors":
            return self.safetensors
        if format == "pickle":
            return self.pickles
        return self.safetensors or self.pickles


def find_files(folder: Path) -> WeightFiles:
    """The weights of a folder as other readers of hfbench choose them; HfbenchError when there is none to load."""
    refuse_headers_only(folder, "loading")
    weights = choose_weights(folder)
    chosen = [each.path for each in weights.shards if each.name.endswith(".safetensors")]
    pickles = [each.path for each in weights.unopened if each.name.endswith(PICKLES)]
    broken = next((each for each in weights.problems if each.severity == "error"), None)
    if broken and chosen:
        raise HfbenchError(broken.found, where=folder / broken.where, remedy=broken.remedy)
    if not chosen and not pickles:
        raise HfbenchError("holds no safetensors, .bin or .pt file", where=folder, remedy="give a folder with weights")
    gone = [each for each in (*chosen, *pickles) if not each.is_file()]
    if gone:
        raise HfbenchError("is not there", where=gone[0], remedy="fetch the model again")
    return WeightFiles(
        safetensors=_real(chosen), pickles=_real(pickles), filesystem=filesystem((*chosen, *pickles)[0].resolve())
    )


def filesystem(path: Path) -> str:
    """The kind of file system a path lies on, by the longest mount point above it; `unknown` where none is told."""
    best, kind = "", "unknown"
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return kind
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape", "replace")
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def _real(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(each.resolve() for each in paths)
