"""Drives a decode step compiled from packed caches; prompts run eagerly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfbench.engines.builders.compile import unpack, warmed
from hfbench.engines.files import look_at_source
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
    """HfbenchError when weights of the checkpoint are not there any more, or are known to have changed."""
    changed, _ = look_at_source(source, manifest.source.files)
    for name in changed:
        if not (source / name).exists():
            found = "the checkpoint the engine needs is not there"
            raise HfbenchError(found, where=source / name, remedy="put it back, or build the engine again")
        found = "the checkpoint has changed since the engine was built from it"
        raise HfbenchError(found, where=source / name, remedy="build the engine again")


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
