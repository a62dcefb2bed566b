"""Architectures that SGLang, llama.cpp and TensorRT-LLM's plan backend have: shipped tables, or installed sources."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

Listed = Literal["sglang", "llama_cpp", "trtllm_plans"]

ENTRY = re.compile(r"^EntryClass(?:\s*:[^=\n]+)?\s*=\s*(\[[^\]]*\]|\([^)]*\)|\w+)", re.MULTILINE)
"""How a module of SGLang says which classes it has."""
MODULE = re.compile(r"[A-Za-z_]\w*")
MOST_BYTES = 4 * 2**20
"""Bytes of one module that are read."""


@dataclass(frozen=True, kw_only=True)
class Architectures:
    """Names of architectures that one version of a runtime knows, and where that was read."""

    version: str
    read: str
    """The day, or `today` for an installed package."""
    source: str
    names: frozenset[str]
    installed: bool = False


@lru_cache(maxsize=4)
def shipped_names(runtime: Listed) -> Architectures:
    """The table that came with hfbench."""
    told = json.loads((files("hfbench.engines.runtimes") / "data" / f"{runtime}.json").read_text("utf-8"))
    return Architectures(
        version=told["version"], read=told["read"], source=told["source"], names=frozenset(told["architectures"])
    )


@lru_cache(maxsize=4)
def known_names(runtime: Listed) -> Architectures:
    """The names of the installed package, else those shipped. Sources are read as text, never imported."""
    names = shipped_names(runtime)
    if runtime != "sglang" or (package := _installed_sglang()) is None:
        return names
    root, version = package
    try:
        found = scan_sglang(root)
    except OSError:
        return names
    if not found:
        return names  # laid out in a way this reader does not know
    return replace(names, version=version, read="today", source="the installed package", names=found, installed=True)


def scan_sglang(root: Path) -> frozenset[str]:
    """Architectures in the `sglang` package of a folder: the classes its model modules enter."""
    found: set[str] = set()
    for path in sorted((root / "srt" / "models").rglob("*.py")):
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
        for entry in ENTRY.findall(text):
            found.update(MODULE.findall(re.sub(r"#[^\n]*", "", entry)))
    return frozenset(found)


def _installed_sglang() -> tuple[Path, str] | None:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    try:
        spec, number = find_spec("sglang"), version("sglang")
    except (PackageNotFoundError, ImportError, ValueError):
        return None
    return (Path(spec.origin).parent, number) if spec and spec.origin else None
