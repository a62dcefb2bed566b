"""fit: whether a model fits a GPU, term by term, from headers or from the configuration alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.fit_text import text_lines, verdict
from hfbench.actions.params import param
from hfbench.estimate.facts import FitReport
from hfbench.exits import Exit
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.estimate.devices import Device
    from hfbench.jobs.run import Run

TYPES = "float32, float16, bfloat16, fp8, int8 or fp4"
NO_GPU = "no verdict without a GPU: name one with --gpu, such as H100 or 24GiB"


@dataclass(frozen=True, kw_only=True)
class FitResult(FitReport):
    """The verdict; `failed` when the model does not fit or its weights are incomplete.

    Without a GPU, none of this machine and none named, the figures stand and the exit code is 4.
    """

    @property
    def exit(self) -> int | None:
        """4 without a GPU to fit to, where nothing else is wrong; None leaves it to `failed`."""
        return int(Exit.ENVIRONMENT) if self.device is None and not self.failed else None

    @property
    def headline(self) -> str:
        """The verdict; what is missing for one."""
        return NO_GPU if self.device is None else verdict(self)[1]

    def lines(self) -> list[str]:
        """The verdict for people, as wide as the terminal."""
        return text_lines(self)


@action("fit", result=FitResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Fit:
    """Tell whether a model fits a GPU, and which term is in the way."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    gpu: str | None = param(
        "GPU by name, as drivers list it too, or its memory such as 24GiB; default those of this machine", default=None
    )
    context: int | None = param(
        "Tokens of a sequence; default the limit of model and runtime, 32768 at most",
        default=None,
        ge=1,
        le=2**30,
        unit="token",
    )
    batch: int = param("Sequences at once", default=1, ge=1, le=2**20)
    dtype: str | None = param(f"Type of the weights, packed ones unpacked: {TYPES}; default as stored", default=None)
    kv_dtype: str | None = param(f"Type of the KV cache: {TYPES}; default that of the model", default=None)
    tp: int = param("Tensor-parallel ranks", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages", default=1, ge=1, le=1024)
    ep: int = param("Expert-parallel ranks", default=1, ge=1, le=4096)
    runtime: str = param("Runtime to count for", default="vllm", choices=("vllm", "transformers", "transformers-5.14"))
    grid: bool = param("Also show the contexts and batches around these", default=False)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> FitResult:
        """Read headers or configuration, then count; UsageError for ranks that do not divide the model."""
        from hfbench.estimate.devices import find_device
        from hfbench.estimate.report import Request, fit

        asked = {field.name: getattr(self, field.name) for field in fields(Request)}
        device, present, notes = (find_device(self.gpu), None, ()) if self.gpu else _of_this_machine()
        report = fit(
            self.model, Request(**asked), device=device, present=present, cache_dir=self.cache_dir, notes=notes
        )
        return FitResult(**{field.name: getattr(report, field.name) for field in fields(report)})


def _of_this_machine() -> tuple[Device | None, int | None, tuple[str, ...]]:
    """The GPU here with the least memory, how many there are, or the reason why there is none."""
    from hfbench.estimate.devices import Device
    from hfbench.gpu.reading import Unavailable
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler()
    try:
        snapshot = sampler.sample()
    finally:
        sampler.close()
    sizes = [
        (int(each.memory.total), str(each.name))
        for each in snapshot.devices
        if not each.reason and not isinstance(each.memory.total, Unavailable)
    ]
    if not sizes:
        reason = snapshot.reason or "no GPU tells its memory"
        return None, None, (f"{NO_GPU} ({reason})",)
    memory, name = min(sizes)
    return Device(name=printable(name), memory_bytes=memory, source="the driver of this machine"), len(sizes), ()
