"""gpus.explain: why device memory ran out although some seems free, or who holds it now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import MissingError, UsageError

if TYPE_CHECKING:
    from hfbench.gpu.explain.result import ExplainResult
    from hfbench.gpu.telemetry import GpuSnapshot
    from hfbench.jobs.run import Run


@action("gpus.explain", result="hfbench.gpu.explain.result:ExplainResult", inline=True)
@dataclass(frozen=True, kw_only=True)
class GpusExplain:
    """Explain where device memory went, and name what made an allocation fail with its evidence and its remedy.

    Of a job, a snapshot of torch's allocator, a log with the error, or a process; of every device now when none is
    given. A snapshot is read without running anything in it.
    """

    job: str = param("Job whose memory is to be explained", default="")
    snapshot: Path | None = param("Snapshot of torch's allocator: pickle or JSON", default=None, kind="path")
    log: Path | None = param("Text that holds the error of torch or of a library", default=None, kind="path")
    pid: int | None = param("Process that holds device memory", default=None, ge=1)

    def perform(self, run: Run) -> ExplainResult:
        """Look at what was given; UsageError for several things, MissingError where there is no GPU to look at."""
        from hfbench.gpu.explain import gather
        from hfbench.jobs.directory import find_job
        from hfbench.paths import jobs_root

        given = [name for name in ("job", "snapshot", "log", "pid") if getattr(self, name)]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} were given", where="gpus.explain", remedy="give one of them")
        if self.job:
            return gather.explain_job(find_job(jobs_root(), self.job))
        if self.snapshot:
            return gather.explain_file(self.snapshot)
        if self.log:
            return gather.explain_text(self.log)
        seen = _devices()
        if self.pid is None:
            return gather.explain_now(seen)
        from hfbench.gpu.telemetry.processes import job_of

        ours = job_of(self.pid)
        return gather.explain_process(seen, self.pid, find_job(jobs_root(), ours) if ours else None)


def _devices() -> GpuSnapshot:
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler()
    try:
        seen = sampler.sample()
    finally:
        sampler.close()
    if not seen.devices:
        remedy = "give --job, --snapshot or --log, which need no GPU"
        raise MissingError(seen.reason or "no GPU", where="gpus.explain", remedy=remedy)
    return seen
