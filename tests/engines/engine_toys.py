"""Small manifests and engine folders to check."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfbench.engines.files import Looked, LookedAt
from hfbench.engines.machine import Machine
from hfbench.engines.manifest import BuiltOn, EngineFile, GpuBuilt, Manifest, ShapeProfile, Source

CONTENT = b"not a real package"


def manifest_of(folder: Path | None, content: bytes = CONTENT, **fields: Any) -> Manifest:
    """A manifest of an engine of one file, which is written where a folder is given."""
    if folder is not None:
        (folder / "model.pt2").write_bytes(content)
    told: dict[str, Any] = {
        "builder": "aoti",
        "created": "2026-11-30T21:04:05Z",
        "hfbench": "0.6.0",
        "files": (EngineFile(name="model.pt2", size=len(content), sha256=hashlib.sha256(content).hexdigest()),),
        "built_on": built_on(),
        "dtype": "fp32",
        "shapes": ShapeProfile(batch=1, min_prompt=1, max_prompt=8, context=16),
        "argv": ("hfbench", "engine", "build", "./model"),
        "options": {"max_autotune": "false"},
        "source": Source(given="./model"),
    }
    return Manifest(**(told | fields))


def built_on(**fields: Any) -> BuiltOn:
    """The machine of a builder on a GPU box, with what is given in place of its facts."""
    told: dict[str, Any] = {
        "python": "3.12.4",
        "torch": "2.13.0+cu130",
        "cuda": "13.0",
        "driver": "580.65.06",
        "nccl": "2.28.9",
        "abi": "cxx11",
        "machine": "x86_64",
        "cpu": "a processor",
        "isa": ("avx", "avx2", "fma"),
        "isa_level": "avx2",
        "gpu": GpuBuilt(name="NVIDIA H100", compute_capability="9.0", sm_count=132, memory=80 * 2**30),
    }
    return BuiltOn(**(told | fields))


def machine_like(built: BuiltOn, **fields: Any) -> Machine:
    """A machine with the versions and the GPU of a builder."""
    gpus = (built.gpu,) if built.gpu else ()
    told: dict[str, Any] = {"versions": replace(built, gpu=None), "gpus": gpus, "cuda_driver": "13.0"}
    return Machine(**(told | fields))


def looked(manifest: Manifest, state: Looked = "right") -> tuple[LookedAt, ...]:
    """Files as they would be found in one state."""
    return tuple(LookedAt(name=each.name, state=state, here=state) for each in manifest.files)
