"""Drives a decode step compiled from packed caches; prompts run eagerly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfbench.engines.builders.compile import unpack, warmed
from hfbench.engines.manifest import Manifest
from hfbench.errors import HfbenchError
from hfbench.gpu.devices import Gpu
from hfbench.gpu.generate_model import load_model
from hfbench.units import show_seconds


def open_steps(folder: Path, manifest: Manifest, device: Any, threads: int) -> CompiledSteps:
    """Read the checkpoint again, take over the packed caches, and compile the step from them."""
    source = Path(manifest.source.folder)
    refuse_changed(source, manifest)
    gpu = Gpu(index=device.index, lease="", name="") if device.type == "cuda" else None
    loaded = load_model(source, gpu=gpu, dtype=manifest.dtype, attention=manifest.options.get("attention", "sdpa"))
    unpack(folder)
    return CompiledSteps(loaded.model, loaded.device, manifest)


def refuse_changed(source: Path, manifest: Manifest) -> None:
    """HfbenchError when the checkpoint is not there any more, or has files of other sizes."""
    for file in manifest.source.files:
        try:
            size = (source / file.name).stat().st_size
        except OSError as error:
            found = f"the checkpoint the engine needs cannot be read ({error.strerror})"
            raise HfbenchError(
                found, where=source / file.name, remedy="put it back, or build the engine again"
            ) from None
        if size != file.size:
            found = "the checkpoint has changed since the engine was built from it"
            raise HfbenchError(found, where=source / file.name, remedy="build the engine again")


class CompiledSteps:
    """A static cache, eager prompts and a compiled step."""

    def __init__(self, model: Any, device: Any, manifest: Manifest) -> None:
        made = warmed(model, device, batch=manifest.shapes.batch, context=manifest.shapes.context)
        self._step, self._advance = made.step, made.advance
        cold = float(manifest.options.get("cold_seconds", "nan"))
        self.notes = (
            f"the first step took {show_seconds(made.seconds)} ({made.sentence});"
            f" when it was built, with nothing cached, {show_seconds(cold)}",
        )

    def prefill(self, ids: Any) -> Any:
        """Empty the cache and read prompts."""
        return self._step.prefill(ids)

    def step(self, tokens: Any, position: int) -> Any:
        """Logits after one more token; the cache counts by itself."""
        self._step.write(tokens)
        return self._advance()
