"""kernel.tune: the quickest configuration of a kernel on this GPU, kept in a file that programs load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.kernels.timing_results import Device
from hfbench.gpu.kernels.tuned import Tuned, TunedRow
from hfbench.paths import expand
from hfbench.text import clip, clip_middle
from hfbench.units import show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
LABEL = 34


@dataclass(frozen=True, kw_only=True)
class KernelTuneResult:
    """One entry a key with all its rows, the quickest first; `failed` when a key has no configuration that works."""

    kernel: str
    file: str
    table: str
    """The file with the rows."""
    on: Device
    arch: str
    """What was pruned for; empty when nothing was."""
    tuned: tuple[Tuned, ...]
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """True when some key was left without a configuration."""
        return not all(each.best for each in self.tuned)

    @property
    def headline(self) -> str:
        """`12 rows, 3 pruned, 6 kept from before`."""
        rows = [row for each in self.tuned for row in each.rows]
        pruned = sum(row.verdict == "pruned" for row in rows)
        return f"{len(rows)} rows, {pruned} pruned, {sum(each.kept for each in self.tuned)} kept from before"

    def lines(self) -> list[str]:
        """A table for each key, then the file and the notes; at most 80 columns wide."""
        head = f"{self.kernel} on {self.on.name}: {self.headline}"
        noted = [line for note in self.notes for line in wrap(f"~ {note}", WIDTH, subsequent_indent="  ")]
        told = [line for each in self.tuned for line in _key(each)]
        where = clip_middle(self.table, WIDTH, ellipsis="...")
        return [clip(head, WIDTH, ellipsis="..."), where, *told, *([""] if noted else []), *noted]


@action(
    "kernel.tune",
    result=KernelTuneResult,
    lease="device",
    needs_gpu=True,
    needs=("torch", "triton"),
    extra="torch,triton",
)
@dataclass(frozen=True, kw_only=True)
class KernelTune:
    """Find the quickest configuration of a Triton kernel for its sizes, and keep it where programs find it.

    What the static table refuses is not run, what was timed before is not timed again, and a configuration that fails
    or hangs costs its own row.
    """

    kernel: str = param("Kernel by name, or path of a file with one", positional=True)
    device: str = param(
        "Where to run: auto for the first GPU, cuda:N, or cpu to time references instead", default="auto", kind="device"
    )
    out: Path | None = param("File of the rows; default one in the cache folder", default=None, kind="path")
    config: str = param("Only configurations whose label holds this", default="")
    dtype: tuple[str, ...] = param("Element types, such as bf16; default the kernel's usual one", default=())
    size: tuple[str, ...] = param('Sizes such as "R=4096 C=8192"; default those it declares', default=())
    arch: str = param("On the CPU: prune for this architecture, such as sm_90", default="")
    again: Literal["none", "failed", "all"] = param("Which rows of earlier runs to run again", default="none")
    rank: Literal["cold", "warm", "cold graph", "warm graph"] = param("What counts: which time", default="cold")
    ci: float = param("Stop when the median is known within this share", default=0.01, ge=0.0001, le=1)
    budget: float = param("Time for each figure", default=0.3, kind="duration", ge=0.001, unit="s")
    limit: float = param("CPU time one configuration may take", default=60.0, kind="duration", ge=1, unit="s")

    def perform(self, run: Run) -> KernelTuneResult:
        """Time one configuration after the other; MissingError where there is no such GPU."""
        from hfbench.gpu.devices import choose_device
        from hfbench.gpu.kernels.loading import find
        from hfbench.gpu.kernels.tune import tune
        from hfbench.gpu.kernels.tuned import default_table

        file, chosen = find(self.kernel), choose_device(self.device, needs_gpu=True)
        table = expand(str(self.out or default_table())).absolute()
        report = tune(
            file,
            device=chosen.name,
            table=table,
            arch=self.arch,
            dtypes=self.dtype,
            sizes=self.size,
            config=self.config,
            again=self.again,
            rank=self.rank,
            width=self.ci,
            budget=self.budget,
            seconds=self.limit,
            watch=lambda done, total: run.progress("tune", done, total),
            loading=lambda seconds: run.progress("load the file", seconds, unit="s"),
        )
        run.artifact(table, "tuned configurations")
        return KernelTuneResult(**vars(report))


def _key(tuned: Tuned) -> Iterator[str]:
    yield ""
    yield clip(f"{tuned.key.dtype} {tuned.key.bucket} on {tuned.key.capability}", WIDTH, ellipsis="...")
    if not tuned.best:
        yield "no configuration works"
    top = next((row.seconds for row in tuned.rows if row.seconds), None)
    for row in tuned.rows:
        yield from _row(row, top)
    if tuned.alike:
        text = f"~ not told apart from the quickest: {', '.join(tuned.alike)}"
        yield from wrap(text, WIDTH, subsequent_indent="  ", max_lines=3, placeholder=" ...")


def _row(row: TunedRow, top: float | None) -> Iterator[str]:
    """A figure, or why there is none."""
    label = f"{clip(row.choice.label, LABEL - 1, ellipsis='...'):<{LABEL}}"
    if row.seconds and top:
        figures = f"{show_seconds(row.seconds):>9}{row.seconds / top:>8.2f}x"
        yield f"{label}{figures}  {row.bench} {row.rank}, {row.samples} samples"
        return
    text = f"{label}{row.verdict}{f': {row.reason}' if row.reason else ''}"
    yield from wrap(text, WIDTH, subsequent_indent="   ", max_lines=3, placeholder=" ...", break_on_hyphens=False)
