"""kernel.time: how fast a kernel is on this GPU, beside PyTorch and what the card can do at best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.kernels.timing_results import Device, TimeRow
from hfbench.text import clip, clip_middle
from hfbench.units import show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
LABEL = 27
NEVER_FINE = ("differs", "failed", "crash", "timeout")


@dataclass(frozen=True, kw_only=True)
class KernelTimeResult:
    """One row a subject and way to run it, all samples kept; `failed` when one could not be timed."""

    kernel: str
    file: str
    on: Device
    rows: tuple[TimeRow, ...]
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """True when something is wrong with a configuration or a reference, or nothing was timed."""
        wrong = any(row.verdict in NEVER_FINE for row in self.rows)
        return wrong or not any(row.time for row in self.rows if row.subject not in ("copy", "matmul"))

    @property
    def headline(self) -> str:
        """The quickest configuration with a cold cache, or where there is none the quickest reference."""
        timed = [row for row in self.rows if row.time and row.cache == "cold" and row.shape]
        best = min(
            (row for row in timed if row.subject == "triton"),
            key=_median,
            default=min(timed, key=_median, default=None),
        )
        return f"{_label(best)} {show_seconds(_median(best))}" if best else "nothing was timed"

    def lines(self) -> list[str]:
        """A table for each size and element type, then what speaks against figures; at most 80 columns wide."""
        head = f"{self.kernel} on {self.on.name}: {self.headline}"
        columns = f"{'':<{LABEL}}{'cache':<6}{'graph':<6}{'median':>9}{'+-':>6}{'GB/s':>9}{'of copy':>8}{'TFLOP/s':>9}"
        told = [line for row in self.rows for line in _against(row)]
        noted = [line for note in self.notes for line in wrap(f"~ {note}", WIDTH, subsequent_indent="  ")]
        where = clip_middle(self.file, WIDTH, ellipsis="...")
        blank = [""] if told else []
        return [clip(head, WIDTH, ellipsis="..."), where, *_tables(self.rows, columns), *blank, *told, "", *noted]


@action(
    "kernel.time",
    result=KernelTimeResult,
    lease="device",
    needs_gpu=True,
    needs=("torch", "triton"),
    extra="torch,triton",
)
@dataclass(frozen=True, kw_only=True)
class KernelTime:
    """Time a Triton kernel on a GPU beside eager, torch.compile and a measured copy and matmul.

    On the CPU the references alone are timed: Triton's interpreter says nothing of speed.
    """

    kernel: str = param("Kernel by name, or path of a file with one", positional=True)
    device: str = param(
        "Where to run: auto for the first GPU, cuda:N, or cpu for the references alone", default="auto", kind="device"
    )
    config: str = param("Only configurations whose label holds this", default="")
    dtype: tuple[str, ...] = param("Element types, such as bf16; default the kernel's usual one", default=())
    size: tuple[str, ...] = param('Sizes such as "R=4096 C=8192"; default those it declares', default=())
    ci: float = param("Stop when the median is known within this share", default=0.01, ge=0.0001, le=1)
    budget: float = param("Time for each figure", default=0.5, kind="duration", ge=0.001, unit="s")
    limit: float = param("CPU time one configuration may take", default=180.0, kind="duration", ge=1, unit="s")

    def perform(self, run: Run) -> KernelTimeResult:
        """Run everything in processes of their own, one at a time; MissingError where there is no such GPU."""
        from hfbench.gpu.devices import choose_device
        from hfbench.gpu.kernels.loading import find
        from hfbench.gpu.kernels.timing_run import time_all

        file, chosen = find(self.kernel), choose_device(self.device, needs_gpu=True)
        report = time_all(
            file,
            device=chosen.name,
            dtypes=self.dtype,
            sizes=self.size,
            config=self.config,
            width=self.ci,
            budget=self.budget,
            seconds=self.limit,
            watch=lambda done, total: run.progress("time", done, total),
            loading=lambda seconds: run.progress("load the file", seconds, unit="s"),
        )
        for row in report.rows:
            if row.time and row.cache == "cold" and not row.graph and row.subject == "triton":
                run.metric("time", row.time.p50, "s")
        return KernelTimeResult(
            kernel=report.kernel, file=report.file, on=report.on, rows=report.rows, notes=report.notes
        )


def _tables(rows: tuple[TimeRow, ...], columns: str) -> Iterator[str]:
    for (dtype, shape), alike in groupby(rows, lambda row: (row.dtype, row.shape)):
        sizes = " ".join(f"{axis}={size}" for axis, size in shape.items())
        yield from ("", clip(f"{dtype} {sizes}" if dtype else "ceilings", WIDTH, ellipsis="..."), columns)
        for row in alike:
            label = f"{clip(_label(row), LABEL - 1, ellipsis='...'):<{LABEL}}"
            if row.time is None:
                yield clip(f"{label}{row.verdict}", WIDTH)
                continue
            middle, interval = row.time.p50, _interval(row)
            share = "-" if row.of_copy is None else f"{row.of_copy:.0%}"
            way = f"{row.cache:<6}{'yes' if row.graph else 'no':<6}"
            figures = f"{(row.bandwidth or 0) / 1e9:>9.1f}{share:>8}{(row.rate or 0) / 1e12:>9.3g}"
            yield f"{label}{way}{show_seconds(middle):>9}{interval:>6}{figures}"


def _label(row: TimeRow) -> str:
    return row.config or {"eager": "torch eager", "compile": "torch.compile"}.get(row.subject, row.subject)


def _median(row: TimeRow | None) -> float:
    return row.time.p50 if row and row.time else float("inf")


def _interval(row: TimeRow) -> str:
    """Half the width of the median's interval as a share of it."""
    time = row.time
    if time is None or time.ci_low is None or time.ci_high is None:
        return "-"
    return f"{max(time.ci_high - time.p50, time.p50 - time.ci_low) / time.p50:.1%}"


def _against(row: TimeRow) -> Iterator[str]:
    where = " ".join(filter(None, [_label(row), row.dtype, row.cache, "graph" if row.graph else ""]))
    against = "; ".join(f"{each.word}: {each.detail}" for each in row.verdicts if each.word != "stable")
    if sentence := row.reason or against:
        text = f"{'x' if row.verdict in NEVER_FINE else '~'}  {where}: {sentence}"
        yield from wrap(text, WIDTH, subsequent_indent="   ", max_lines=3, placeholder=" ...", break_on_hyphens=False)
