"""kernel.static: what the compiler says of each configuration of a kernel, for GPUs that need not be here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.kernels.results import StaticRow
from hfbench.line_width import cut, cut_end, paragraph, room
from hfbench.text import cells, clip

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 25
USUAL = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
NEVER_FINE = ("refused", "failed", "timeout", "crash")


@dataclass(frozen=True, kw_only=True)
class ConfigVerdict:
    """What the rows of one configuration say together, in words."""

    config: str
    dtype: str
    text: str


@dataclass(frozen=True, kw_only=True)
class KernelStaticResult:
    """One row a configuration, element type and architecture; `verdicts` says the same in sentences."""

    kernel: str
    file: str
    triton: str
    rows: tuple[StaticRow, ...]
    verdicts: tuple[ConfigVerdict, ...]
    counts: dict[str, int]
    """Rows by verdict."""
    failed: bool
    """True when a row is as bad as what was asked to fail on."""

    @property
    def headline(self) -> str:
        """`10 ok, 2 refused`."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()) or "no row of an earlier run"

    def lines(self) -> list[str]:
        """A table, then a sentence for each configuration; as wide as the terminal."""
        head = f"{self.kernel}: {self.headline}" + (f"  (Triton {self.triton})" if self.triton else "")
        labels = _labels(self.rows)
        width = max(LABEL, min(max((cells(each) + 1 for each in labels), default=0), room(LABEL)))
        columns = f"{'configuration':<{width}}{'arch':<7}{'regs':>5}{'spills':>8}{'shared':>15}{'warps':>7}  verdict"
        told = [line for each in self.verdicts for line in _sentence(each)]
        where = cut(self.file)
        return [cut_end(head), where, "", columns, *_rows(self.rows, labels, width), "", *told]


@action("kernel.static", result=KernelStaticResult, needs=("triton",), extra="triton")
@dataclass(frozen=True, kw_only=True)
class KernelStatic:
    """Compile a Triton kernel for GPUs that need not be here: registers, spills, shared memory, occupancy."""

    kernel: str = param("Kernel by name, or path of a file with one", positional=True)
    arch: tuple[str, ...] = param("Architectures such as sm_90, or cards such as H100", default=USUAL)
    dtype: tuple[str, ...] = param("Element types, such as bf16; default the kernel's usual one", default=())
    config: str = param("Only configurations whose label holds this", default="")
    limit: float = param("CPU time one compilation may take", default=120.0, kind="duration", ge=1, unit="s")
    workers: int = param("Compilations at a time; 0 takes every CPU of the process", default=0, ge=0, le=1024)
    cache: bool = param("Take rows from earlier runs where nothing has changed", default=True)
    compile: bool = param(
        "Compile what no earlier run has; without it only rows of earlier runs are told", default=True
    )
    fail_on: Literal["refused", "spills", "never"] = param("What makes the exit code 1", default="refused")

    def perform(self, run: Run) -> KernelStaticResult:
        """Compile in processes of their own; UsageError for a kernel or an architecture that is not known."""
        from hfbench.gpu.kernels.architectures import architectures, find_architecture
        from hfbench.gpu.kernels.loading import find
        from hfbench.gpu.kernels.static import analyse, summary

        on = list(dict.fromkeys(find_architecture(each) for each in self.arch or USUAL))
        report = analyse(
            find(self.kernel),
            on,
            dtypes=self.dtype,
            config=self.config,
            seconds=self.limit,
            workers=self.workers,
            use_cache=self.cache,
            compiles=self.compile,
            watch=lambda done, total: run.progress("compile", done, total),
            loading=lambda seconds: run.progress("load the file", seconds, unit="s"),
        )
        cards = {name: each.cards for name, each in architectures().items()}
        counts: Counter[str] = Counter(row.verdict for row in report.rows)
        wrong = {"refused": NEVER_FINE, "spills": (*NEVER_FINE, "spills"), "never": ()}[self.fail_on]
        return KernelStaticResult(
            kernel=report.kernel,
            file=report.file,
            triton=report.triton,
            rows=report.rows,
            verdicts=tuple(
                ConfigVerdict(config=config, dtype=dtype, text=summary(list(rows), cards))
                for (config, dtype), rows in groupby(report.rows, lambda row: (row.config, row.dtype))
            ),
            counts=dict(counts),
            failed=any(row.verdict in wrong for row in report.rows),
        )


def _labels(rows: tuple[StaticRow, ...]) -> list[str]:
    """What each configuration is called, with its element type where there are several."""
    several = len({row.dtype for row in rows}) > 1
    kinds = [kind for kind, _ in groupby(rows, lambda row: (row.config, row.dtype))]
    return [f"{config} {dtype}" if several else config for config, dtype in kinds]


def _rows(rows: tuple[StaticRow, ...], labels: list[str], width: int) -> Iterator[str]:
    groups = groupby(rows, lambda row: (row.config, row.dtype))
    for whole, (_, alike) in zip(labels, groups, strict=True):
        label = clip(whole, width - 1, ellipsis="...")
        for row in alike:
            shared = f"{'-' if row.shared_bytes is None else row.shared_bytes}/{row.shared_limit}"
            share = f"{row.occupancy:.0%}" if row.occupancy else "-"
            figures = f"{_figure(row.registers):>5}{_figure(row.spills):>8}{shared:>15}{share:>7}"
            yield f"{label:<{width}}{row.arch:<7}{figures}  {row.verdict}"
            label = ""


def _figure(value: int | None) -> str:
    return "-" if value is None else str(value)


def _sentence(verdict: ConfigVerdict) -> list[str]:
    text = f"{verdict.config} {verdict.dtype}: {verdict.text}"
    return paragraph(text, most=6, later="  ")
