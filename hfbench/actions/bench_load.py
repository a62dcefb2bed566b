"""bench.load: how fast a checkpoint gets from its disk to a device, by each loader there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param

if TYPE_CHECKING:
    from hfbench.gpu.loading.result import LoadResult
    from hfbench.jobs.run import Run


@action("bench.load", result="hfbench.gpu.loading.result:LoadResult", lease="device", needs=("torch",), extra="torch")
@dataclass(frozen=True, kw_only=True)
class BenchLoad:
    """Measure how fast each loader brings a checkpoint from its disk to a device.

    From a cold and a warm page cache, against reading the same bytes plainly; each loader verified byte by byte first.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    device: str = param("Where to: auto for the first GPU or else cpu, cuda:N, cpu", default="auto", kind="device")
    loaders: tuple[str, ...] = param("Loaders by name, such as safetensors-mmap; default all that can run", default=())
    cache: Literal["both", "cold", "warm"] = param("State of the page cache", default="both")
    rounds: int = param("Most loads of each loader in each state", default=10, ge=1, le=10_000)
    ci: float = param("Stop when every median is known within this share", default=0.05, ge=0.0001, le=1)
    budget: float = param(
        "Time to measure, verifying not counted; the round under way is finished",
        default=120.0,
        kind="duration",
        ge=0.001,
        unit="s",
    )
    limit: float = param("Time one load may take", default=600.0, kind="duration", ge=0.1, unit="s")

    def perform(self, run: Run) -> LoadResult:
        """Verify, then measure in interleaved rounds."""
        from hfbench.gpu.loading.measure import measure

        return measure(self, run)
