"""Which names each runtime knows: shipped as data with its version, refreshed from the installed package."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from hfbench.models.field_types import Packed, unpacked

DATA = Path(__file__).parent / "data"

Runtime = Literal["transformers", "vllm", "tensorrt_llm", "megatron_core"]
RUNTIMES: tuple[Runtime, ...] = ("transformers", "vllm", "tensorrt_llm", "megatron_core")

TITLES: Mapping[Runtime, str] = {
    "transformers": "transformers",
    "vllm": "vLLM",
    "tensorrt_llm": "TensorRT-LLM",
    "megatron_core": "Megatron-core",
}


@dataclass(frozen=True, kw_only=True)
class Names:
    """What one version of a runtime knows. Tables that a runtime does not have are empty."""

    runtime: Runtime
    version: str
    read: str
    """The day the names were taken from the source, `today` for an installed package."""
    installed: bool = False
    unread: str = ""
    """The version of an installed package whose names could not be read: these are others."""
    config_classes: Mapping[str, str] = field(default_factory=dict)
    """Model type to configuration class."""
    architectures: Mapping[str, str] = field(default_factory=dict)
    """A name in `architectures` to the class that carries it out."""
    base_models: Mapping[str, str] = field(default_factory=dict)
    """Model type to the class without a head, which a missing `architectures` leads to."""
    task_models: Mapping[str, str] = field(default_factory=dict)
    """Model type to the class that generates text."""
    tokenizers: Mapping[str, str] = field(default_factory=dict)
    wrong_tokenizers: frozenset[str] = frozenset()
    """Model types whose published tokenizer_class is known to be wrong and is not used."""
    without_backend: frozenset[str] = frozenset()
    """Classes of transformers that vLLM's transformers backend cannot run."""
    previous: Mapping[str, str] = field(default_factory=dict)
    """Architectures given up, with the last version that had them."""
    plugins: Mapping[str, str] = field(default_factory=dict)
    type_of_architecture: Mapping[str, str] = field(default_factory=dict)
    float16_refused: frozenset[str] = frozenset()
    rope: Mapping[str, Any] = field(default_factory=dict)
    """Model type to the base and the context its class assumes, and whether it reads RoPE in a way of its own."""
    types: Packed = field(default_factory=dict)
    """Annotations of the fields of configuration classes; see field_types.py."""
    typed: tuple[str, ...] = ()
    """The model types that `types` numbers: those shipped, which an installed package may not have."""
    whole_heads: frozenset[str] = frozenset()
    """Model types whose hidden size must be a multiple of the heads."""
    layer_types: tuple[str, ...] = ()
    types_beside: frozenset[str] = frozenset()
    """Model types of the transformers that this runtime pins."""
    version_beside: str = ""

    @cached_property
    def field_types(self) -> Mapping[str, Mapping[str, str]]:
        """Field to model type to the annotation its class gives it."""
        return unpacked(self.types, self.typed)

    @property
    def title(self) -> str:
        """`vLLM 0.33.0`."""
        return f"{TITLES[self.runtime]} {self.version}"


def shipped(runtime: Runtime) -> Names:
    """The names that came with hfbench."""
    return _names(runtime, _read(runtime))


@lru_cache(maxsize=8)
def known(runtime: Runtime) -> Names:
    """The names of the installed package when there is one of another version, else those shipped.

    The package's source is read, not imported; what cannot be read keeps the shipped names.
    """
    names = shipped(runtime)
    package = _installed(runtime)
    if package is None:
        return names
    root, version = package
    if version == names.version:
        return replace(names, installed=True)
    try:
        told = _read(runtime)
        typed = list(told.get("config_classes", {}))
        fresh = {**told, "typed": typed, **_scanner(runtime)(root), "version": version, "read": "today"}
    except (OSError, SyntaxError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return replace(names, unread=version)  # laid out in a way this reader does not know
    return replace(_names(runtime, fresh), installed=True)


def installed_root(runtime: Runtime) -> Path | None:
    """The folder of the installed package, None when there is none or its names are not read."""
    package = _installed(runtime)
    return package[0] if package else None


@lru_cache(maxsize=8)
def rules(name: str) -> Mapping[str, Any]:
    """Rules kept as data: the TOML file of that name."""
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))


def _read(runtime: Runtime) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((DATA / f"{runtime}.json").read_text("utf-8"))
    return read


def _names(runtime: Runtime, told: Mapping[str, Any]) -> Names:
    architectures = told["architectures"]
    beside = told.get("transformers") or {}
    return Names(
        runtime=runtime,
        version=told["version"],
        read=told["read"],
        config_classes=told.get("config_classes", {}),
        architectures=architectures if isinstance(architectures, dict) else {name: name for name in architectures},
        base_models=told.get("base_models", {}),
        task_models=told.get("task_models", {}),
        tokenizers=told.get("tokenizers", {}),
        wrong_tokenizers=frozenset(told.get("wrong_tokenizers", ())),
        without_backend=frozenset(told.get("without_backend", ())),
        previous=told.get("previous", {}),
        plugins=told.get("plugins", {}),
        type_of_architecture=told.get("type_of_architecture", {}),
        float16_refused=frozenset(told.get("float16_refused", ())),
        rope=told.get("rope", {}),
        types=told.get("types", {}),
        typed=tuple(told.get("typed") or told.get("config_classes", {})),
        whole_heads=frozenset(told.get("whole_heads", ())),
        layer_types=tuple(told.get("layer_types", ())),
        types_beside=frozenset(beside.get("types", ())),
        version_beside=beside.get("version", ""),
    )


def _installed(runtime: Runtime) -> tuple[Path, str] | None:
    """Folder and version of the package beside hfbench, without importing it."""
    if runtime not in ("transformers", "vllm"):
        return None
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    try:
        spec = find_spec(runtime)
        number = version(runtime)
    except (PackageNotFoundError, ImportError, ValueError):
        return None
    return (Path(spec.origin).parent, number) if spec and spec.origin else None


def _scanner(runtime: Runtime) -> Callable[[Path], dict[str, Any]]:
    from hfbench.models.runtime_scan import scan_transformers, scan_vllm

    return scan_vllm if runtime == "vllm" else scan_transformers
