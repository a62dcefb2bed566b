"""Engines as modes of bench.generate and bench.modes: `engine:` and the folder of one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hfbench.engines.fitting import fitting_options
from hfbench.engines.manifest import MANIFEST, Manifest, engine_folder, fingerprint
from hfbench.engines.running.decoder import EngineDecoder, refuse_shape
from hfbench.engines.running.open_engine import open_engine, sealed_manifest
from hfbench.errors import UsageError
from hfbench.gpu.devices import Gpu
from hfbench.gpu.generate_model import Loaded
from hfbench.gpu.generate_modes import ENGINE
from hfbench.gpu.generate_result import EngineUsed
from hfbench.paths import expand


class EngineModes:
    """Finds engines by the mode that names them."""

    def dtype(self, mode: str, *, batch: int, prompt: int | None, new_tokens: int) -> str:
        """The dtype of an engine, from its manifest; UsageError when it was built for other shapes."""
        folder, manifest = _found(mode)
        length = manifest.shapes.min_prompt if prompt is None else prompt
        try:
            refuse_shape(manifest.shapes, (batch, length), new_tokens, str(folder))
        except UsageError as error:
            remedy = f"give {fitting_options(manifest.shapes, prompt, new_tokens)}, or build an engine for this shape"
            raise UsageError(error.found, where=error.where, remedy=remedy) from None
        return manifest.dtype

    def open(self, mode: str, loaded: Loaded, *, threads: int) -> tuple[EngineDecoder, EngineUsed]:
        """A decoder that drives the engine on the device of the model, and what is to be said of it."""
        folder, manifest = _found(mode)
        device: Any = loaded.device
        gpu = Gpu(index=device.index or 0, lease="", name="") if device.type == "cuda" else None
        began = time.perf_counter()
        decoder = open_engine(folder, gpu=gpu, threads=threads)
        return decoder, EngineUsed(
            folder=str(folder),
            id=fingerprint(manifest),
            builder=manifest.builder,
            dtype=manifest.dtype,
            verdict=manifest.proof.verdict if manifest.proof else "not proven",
            load_seconds=time.perf_counter() - began,
            notes=decoder.notes,
        )


def _found(mode: str) -> tuple[Path, Manifest]:
    path = expand(mode.removeprefix(ENGINE)).absolute()
    folder = engine_folder(path)
    if folder is None:
        found = f"holds no {MANIFEST}" if path.is_dir() else "is no folder of an engine"
        raise UsageError(found, where=path, remedy="give the folder that hfbench engine build made")
    return folder, sealed_manifest(folder)
