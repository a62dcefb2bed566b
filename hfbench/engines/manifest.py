"""The manifest beside an engine: all that it depends on, written when it was built."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hfbench.codec import decode, encode
from hfbench.engines.form import COMPUTE_CAPABILITY, FILE_NAME, SHA256, UTC, at_least, fault_in, matching, one_of
from hfbench.errors import HfbenchError
from hfbench.models.files import ENGINE_MANIFEST
from hfbench.models.json_text import JsonError, cut_depth, read_object

MANIFEST = ENGINE_MANIFEST
SCHEMA = 1
"""Counts up when a reader of the older form would misread the newer one."""

LARGEST = 16 * 2**20
"""Bytes of a manifest at most: one of a thousand shards has half a megabyte."""

BUILDERS = ("aoti", "compile", "onnx", "openvino", "trtllm")
VERDICTS = ("proven", "differs", "not run")
HARDWARE_LEVELS = ("", "ampere_plus", "same_compute_capability")

MEND = "undo the edit, or build the engine again"

NOT_OF_THE_IDENTITY = frozenset({"created", "seconds", "log", "proof", "seal", "argv"})
"""Fields that differ between two builds of one engine; the command tells where it was put."""

BY_REQUEST = re.compile(r"(.*) \(request\)", re.DOTALL)
"""An option of TensorRT-LLM that somebody gave, as manifests keep it."""


class ManifestError(HfbenchError):
    """A manifest cannot be read: it is damaged, edited into nonsense, or of a newer hfbench."""


@dataclass(frozen=True, kw_only=True)
class EngineFile:
    """One file of an engine or of its source. `name` is relative to the folder, with `/`."""

    name: str = matching(FILE_NAME)
    size: int = at_least(0)
    """Bytes."""
    sha256: str = matching(SHA256)


@dataclass(frozen=True, kw_only=True)
class GpuBuilt:
    """The GPU an engine was built on."""

    name: str
    compute_capability: str = matching(COMPUTE_CAPABILITY)
    """`9.0`."""
    sm_count: int = at_least(0, default=0)
    """Multiprocessors; 0 where the driver does not tell."""
    memory: int = at_least(0, default=0)
    """Bytes of the card or of its slice."""
    mig: str = ""
    """Profile of a MIG slice, such as `3g.40gb`; empty for a whole card."""


@dataclass(frozen=True, kw_only=True)
class BuiltOn:
    """The machine and the versions an engine was built with; a version is empty where the part was not there."""

    python: str
    torch: str = ""
    cuda: str = ""
    """Version of the CUDA runtime the builder used, such as `13.0`."""
    tensorrt: str = ""
    tensorrt_llm: str = ""
    driver: str = ""
    nccl: str = ""
    triton: str = ""
    transformers: str = ""
    onnxruntime: str = ""
    openvino: str = ""
    abi: str = ""
    """C++ ABI of torch: `cxx11` or `pre-cxx11`."""
    platform: str = "linux"
    machine: str = ""
    """As `uname -m` has it: `x86_64`, `aarch64`."""
    cpu: str = ""
    """Name of the processor."""
    isa: tuple[str, ...] = ()
    """Features of the instruction set that the machine has, as /proc/cpuinfo names them."""
    isa_level: str = ""
    """What the compiled code uses, such as `avx512` or `avx2`; empty when it is not known."""
    gpu: GpuBuilt | None = None
    """The card the engine is for; None for an engine of the CPU."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Over how many processes the engine is spread."""

    world_size: int = at_least(1, default=1)
    tp: int = at_least(1, default=1)
    pp: int = at_least(1, default=1)


@dataclass(frozen=True, kw_only=True)
class ShapeProfile:
    """The shapes an engine answers to. Anything else is refused before the engine sees it."""

    batch: int = at_least(1)
    """Sequences of every call."""
    min_prompt: int = at_least(1)
    max_prompt: int = at_least(1)
    context: int = at_least(1)
    """Tokens the cache holds: prompt and new ones together."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The checkpoint an engine was built from."""

    given: str
    """What was asked for: a folder or a reference."""
    folder: str = ""
    revision: str = ""
    config_sha256: str = matching(SHA256, default="")
    files: tuple[EngineFile, ...] = ()
    """Its weights."""
    signed_by: str = ""
    """Who signed the checkpoint, where that was verified."""
    licence: str = ""


@dataclass(frozen=True, kw_only=True)
class Compat:
    """What an engine was built to tolerate."""

    version_compatible: bool = False
    """Built with TensorRT's VERSION_COMPATIBLE."""
    hardware_level: str = one_of(HARDWARE_LEVELS, default="")
    """TensorRT's hardware compatibility level; empty: this very compute capability."""
    serialization: str = ""
    """TensorRT's internal version tag of the plan, where a log told it."""


@dataclass(frozen=True, kw_only=True)
class ProofCase:
    """The engine against eager at one shape. Errors are of logits, over all steps."""

    batch: int = at_least(1)
    prompt: int = at_least(1)
    """Tokens of each prompt."""
    steps: int = at_least(0)
    max_abs: float
    relative: float
    """The largest error as a share of the largest logit."""
    argmax_agreement: float
    """Share of positions with the same most likely token, 0 to 1."""
    greedy_equal: bool
    finite: bool
    prompt_sha256: str = matching(SHA256, default="")
    """Of the token ids, so that another run can tell that it used the same."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the comparison of an engine with eager gave."""

    verdict: str = one_of(VERDICTS)
    cases: tuple[ProofCase, ...] = ()
    tolerance: float = 0.0
    """Largest `relative` that counts as proven."""
    dtype: str = ""
    device: str = ""
    why: str = ""
    """Why it was not run, or what differs, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All that an engine depends on, and how it was made."""

    schema: int = at_least(1, default=SCHEMA)
    builder: str = one_of(BUILDERS)
    created: str = matching(UTC)
    """`2026-11-30T21:04:05Z`."""
    hfbench: str
    files: tuple[EngineFile, ...]
    built_on: BuiltOn
    layout: Layout = Layout()
    dtype: str
    quantisation: str = ""
    shapes: ShapeProfile
    argv: tuple[str, ...] = ()
    """The command that built it."""
    options: dict[str, str] = field(default_factory=dict)
    """Resolved options of the builder: plug-ins, settings of the compiler."""
    source: Source
    compat: Compat = Compat()
    log: str = ""
    """Name of the build log in the engine's folder."""
    seconds: float = 0.0
    """How long the build took."""
    proof: Proof | None = None
    seal: str = matching(SHA256, default="")
    """SHA-256 of all other fields: tells an edit by hand, and is no signature."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """A manifest as it was read, and whether its fields are still those that were written."""

    manifest: Manifest
    sealed: bool


def engine_folder(path: Path) -> Path | None:
    """The folder of the engine that a path means: the folder itself, its manifest or a file in it; None without
    a manifest."""
    for folder in (path, path.parent):
        if os.path.lexists(path) and os.path.lexists(folder / MANIFEST):
            return folder
    return None


def read_manifest(folder: Path) -> Manifest:
    """The manifest in an engine's folder; ManifestError says what keeps the file from being one."""
    return read_told(folder).manifest


def read_told(folder: Path) -> Told:
    """The same, with whether it was edited since it was written."""
    path = folder / MANIFEST
    try:
        data = read_object(path, folder, LARGEST).value
    except JsonError as error:
        raise ManifestError(error.found, where=path, remedy=error.remedy or "build the engine again") from None
    try:
        return Told(manifest=manifest_from(data), sealed=data.get("seal") == seal_of(data))
    except ManifestError as error:
        raise ManifestError(error.found, where=path, remedy=error.remedy) from None


def manifest_from(data: dict[str, Any]) -> Manifest:
    """A manifest from plain data; ManifestError names the field that is wrong, and a newer schema."""
    schema = data.get("schema")
    if type(schema) is int and schema > SCHEMA:
        found = f"the manifest is of schema {min(schema, 10**9)}, this hfbench reads up to {SCHEMA}"
        raise ManifestError(found, remedy="use a newer hfbench")
    if "schema" not in data:
        raise ManifestError("the manifest has no schema", remedy="build the engine again")
    if fault := "it is nested too deeply" if cut_depth(data) else fault_in(Manifest, data):
        raise ManifestError(fault, remedy=MEND)
    manifest = decode(Manifest, data)
    shapes = manifest.shapes
    if not shapes.min_prompt <= shapes.max_prompt <= shapes.context:
        found = f"shapes: min_prompt {shapes.min_prompt}, max_prompt {shapes.max_prompt} and context {shapes.context}"
        raise ManifestError(f"{found} do not grow in this order", remedy=MEND)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write the manifest of an engine, sealed, by rename; its path."""
    data = encode(manifest)
    if fault := fault_in(Manifest, data):
        raise ManifestError(fault, where=folder / MANIFEST)
    data["seal"] = seal_of(data)
    path = folder / MANIFEST
    partial = path.with_name(f".{MANIFEST}.partial")
    partial.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(partial, path)
    return path


def fingerprint(manifest: Manifest) -> str:
    """Twelve hexadecimal digits over what determines an engine: two builds of one recipe on one machine share them
    when their files are the same."""
    data = {name: value for name, value in encode(manifest).items() if name not in NOT_OF_THE_IDENTITY}
    return _digest(data)[:12]


def recipe_of(manifest: Manifest) -> str:
    """Twelve hexadecimal digits over what was asked for: builder, kind of device, dtype, shapes, ranks, options and the
    checkpoint's content. Every build of one recipe has them, on any machine and with any versions."""
    source, options = manifest.source, manifest.options
    asked = {name: match[1] for name, value in options.items() if (match := BY_REQUEST.fullmatch(value))}
    if manifest.builder == "trtllm":
        asked["template"] = options.get("template", "").partition(", named by ")[0]
    else:
        asked["attention"] = options.get("attention", "sdpa")
    data: dict[str, Any] = {
        "builder": manifest.builder,
        "device": "gpu" if manifest.built_on.gpu else "cpu",
        "dtype": manifest.dtype,
        "quantisation": manifest.quantisation,
        "shapes": encode(manifest.shapes),
        "layout": encode(manifest.layout),
        "options": asked,
        "source": [source.config_sha256, *sorted(each.sha256 for each in source.files)],
    }
    return _digest(data)[:12]


def seal_of(data: dict[str, Any]) -> str:
    """SHA-256 over plain data without its seal."""
    return _digest({name: value for name, value in data.items() if name != "seal"})


def with_proof(manifest: Manifest, proof: Proof) -> Manifest:
    """The manifest with what the comparison gave."""
    return replace(manifest, proof=proof)


def _digest(data: dict[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
