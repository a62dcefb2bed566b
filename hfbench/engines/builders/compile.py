"""The builder `compile`: what torch.compile made of the decode step, packed for processes that come later."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.engines.builders.base import Asked, Built, Making
from hfbench.errors import HfbenchError
from hfbench.models.reference import Location

if TYPE_CHECKING:
    from hfbench.gpu.graphs.step import DecodeStep

CACHE, BINARIES = "compiled.cache", "binaries"
"""torch's own pack of graphs and sources, and a folder of what a C++ compiler made of the sources."""

CODE_BYTES = 512 << 20


class Compile:
    """torch.compile's caches of one decode step; weights stay in the checkpoint, which is read when it is loaded.

    torch's pack holds C++ sources and not what was compiled of them; that lies beside it, in the layout of the cache.
    """

    name = "compile"
    summary = "torch.compile's caches of the decode step; the checkpoint stays where it is, and is needed to run"
    needs = ("torch", "transformers", "safetensors")
    runs_with = needs
    extra = "torch"
    auto_dtype = "auto"

    def refuse(self, asked: Asked, location: Location) -> None:
        """Nothing is known to fail before the step is compiled."""

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """Compiled code alone."""
        return CODE_BYTES

    def build(self, making: Making) -> Built:
        """Compile the step with empty caches, pack them, and compile again from the pack alone."""
        import torch
        from torch._inductor.utils import fresh_cache

        loaded, asked = making.load(), making.asked
        with making.translated("the decode step does not compile"):
            with fresh_cache():
                making.run.progress("compile", 0, 2)
                cold = warmed(loaded.model, loaded.device, batch=asked.batch, context=asked.context)
                saved = torch.compiler.save_cache_artifacts()
                keep_binaries(making.folder)
            if saved is None:
                raise HfbenchError("torch.compile left nothing to pack", where=asked.model)
            packed, info = saved
            (making.folder / CACHE).write_bytes(packed)
            with fresh_cache():
                making.run.progress("compile", 1, 2)
                unpack(making.folder)
                warm = warmed(loaded.model, loaded.device, batch=asked.batch, context=asked.context)
            torch._dynamo.reset()
        making.run.progress("compile", 2, 2)
        making.log(f"cold {cold.seconds:.1f} s, {cold.sentence}; from the pack {warm.seconds:.1f} s, {warm.sentence}")
        if not warm.hits or warm.misses:
            raise HfbenchError(
                f"the packed caches were not enough: {warm.sentence}",
                where=asked.model,
                remedy="use builder aoti, whose package holds the compiled code itself",
            )
        keys = sorted(key for each in info.artifacts.values() for key in each)
        return Built(
            dtype=loaded.dtype,
            options={
                "attention": asked.attention,
                "threads": str(torch.get_num_threads()),
                "cold_seconds": f"{cold.seconds:.3f}",
                "warm_seconds": f"{warm.seconds:.3f}",
                "graphs": str(cold.misses + cold.hits),
                "artifacts": str(len(keys)),
                "inductor_keys": ", ".join(info.inductor_artifacts),
            },
        )


def keep_binaries(folder: Path) -> None:
    """Copy the compiled code out of torch's cache into the engine's folder."""
    cache = _cache()
    for file in cache.rglob("*.so"):
        kept = folder / BINARIES / file.relative_to(cache)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, kept)


def unpack(folder: Path) -> None:
    """Put what an engine holds into torch's cache, where nothing that is there already is written over."""
    import torch

    cache = _cache()
    for file in (folder / BINARIES).rglob("*.so"):
        place = cache / file.relative_to(folder / BINARIES)
        if place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        shutil.copyfile(file, partial)
        os.replace(partial, place)
    torch.compiler.load_cache_artifacts((folder / CACHE).read_bytes())


def _cache() -> Path:
    from torch._inductor.runtime.runtime_utils import cache_dir

    return Path(cache_dir())


class Warmed:
    """A compiled decode step after its first call: what that took, and how often compiled code was found."""

    def __init__(self, step: DecodeStep, advance: Callable[[], Any], seconds: float, hits: int, misses: int) -> None:
        self.step, self.advance, self.seconds, self.hits, self.misses = step, advance, seconds, hits, misses

    @property
    def sentence(self) -> str:
        """Hits and misses of the cache of compiled graphs."""
        return f"{self.hits} found compiled, {self.misses} compiled anew"


def warmed(model: Any, device: Any, *, batch: int, context: int) -> Warmed:
    """Compile the decode step of a model for a batch and a context by calling it once."""
    import torch
    from torch._dynamo.utils import counters

    from hfbench.gpu.decoding import clock
    from hfbench.gpu.graphs.step import DecodeStep

    step, now = DecodeStep(model, device, batch=batch, room=context), clock(device)
    torch._dynamo.reset()
    counters.clear()
    with torch.inference_mode():
        step.prefill(torch.zeros(batch, 1, dtype=torch.long, device=device))
        step.write(torch.zeros_like(step.tokens))
        began = now()
        advance = torch.compile(step.run, dynamic=False)
        advance()
        seconds = now() - began
    hits, misses = (counters["inductor"][f"fxgraph_cache_{each}"] for each in ("hit", "miss"))
    return Warmed(step, advance, seconds, hits, misses)


BUILDER = Compile()
