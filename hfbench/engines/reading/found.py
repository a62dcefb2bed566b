"""What can be told of an engine from its files, and what cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfbench.engines.manifest import BuiltOn
from hfbench.errors import HfbenchError

Kind = Literal["aoti", "compile", "onnx", "openvino", "trtllm", "plan"]

LARGEST_JSON = 16 * 2**20
"""Bytes of a configuration that is read of an engine."""


class NoEngine(HfbenchError):
    """What a path leads to is no engine, or one that is damaged."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that was read, fit for a line."""

    label: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """An engine as its own files tell it."""

    kind: Kind
    what: str
    """In a few words: `AOTInductor package`."""
    path: Path
    size: int
    """Bytes of all its files."""
    facts: tuple[Fact, ...] = ()
    built_on: BuiltOn | None = None
    """What the files tell of the builder's machine: fields that they do not tell are empty."""
    world_size: int = 1
    needs: tuple[str, ...] = ()
    """Shared libraries the loader will look for."""
    glibc: str = ""
    """Newest version of the C library that its code asks for."""
    faults: tuple[str, ...] = ()
    """What keeps it from loading, a sentence each."""
    silent: tuple[str, ...] = ()
    """What its files do not tell, and loading depends on."""


def facts(**values: object) -> tuple[Fact, ...]:
    """Facts by label, without those that are empty; `_` in a name is a blank."""
    return tuple(Fact(label=name.replace("_", " "), value=str(value)) for name, value in values.items() if value)
