"""What the compiler said before, on disk: one small JSON file a key, believed only while its sources are unchanged."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from hfbench.paths import cache_root

SCHEMA = 1
"""To be raised whenever what is kept, or how it is measured, changes its meaning."""

ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
"""Variables by which Triton is told of another assembler."""


class Cache:
    """Answers by key, for one kernel file and the Triton of this Python. Without it everything works, only slower."""

    def __init__(self, path: Path, digest: str, *, use: bool = True) -> None:
        self._use = use
        self._base = [SCHEMA, digest, str(path), _version("triton"), *map(_assembler, ASSEMBLERS)]

    def get(self, *key: str) -> dict[str, Any] | None:
        """What was kept; None when there is nothing, it is damaged, or a module beside the file has changed."""
        if not self._use:
            return None
        with suppress(OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError):
            told: dict[str, Any] = json.loads(self._file(key).read_text("utf-8"))
            found: dict[str, Any] = told["value"]
            whole = told["sum"] == _sum(found)
            if whole and all(_digest(path) == digest for path, digest in told["neighbours"].items()):
                return found
        return None

    def put(self, *key: str, value: Mapping[str, Any], neighbours: Mapping[str, str]) -> None:
        """Keep an answer and the digests of the modules it depends on besides the file; a full disk is no error."""
        file = self._file(key)
        told = {"key": [*self._base, *key], "neighbours": dict(neighbours), "sum": _sum(value), "value": dict(value)}
        text = json.dumps(told)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_name(f".{file.name}.{os.getpid()}")
            new.write_text(text, encoding="utf-8")
            new.replace(file)

    def _file(self, key: tuple[str, ...]) -> Path:
        name = hashlib.sha256(json.dumps([*self._base, *key]).encode()).hexdigest()
        return cache_root() / "kernels" / name[:2] / f"{name}.json"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _assembler(variable: str) -> str:
    """Path, size and time of an assembler that a variable names."""
    path = os.environ.get(variable, "")
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return f"{path} {found.st_size} {found.st_mtime_ns}"
    return path


def _sum(value: Mapping[str, Any]) -> str:
    """What tells a value that was written here from one that was damaged since, whatever the damage."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
