"""kernel.check: whether a kernel is right, case by case, in Triton's interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.kernels.results import CheckRow
from hfbench.line_width import cut, cut_end, paragraph, room
from hfbench.text import cells, clip

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 30
MOST_TOLD = 10
"""Cases that are wrong and written out; `--json` lists all."""


@dataclass(frozen=True, kw_only=True)
class KernelCheckResult:
    """One row a case; `failed` when one is not ok."""

    kernel: str
    file: str
    triton: str
    rows: tuple[CheckRow, ...]
    counts: dict[str, int]
    """Rows by verdict."""

    @property
    def failed(self) -> bool:
        """True when a case is not ok, or there is none."""
        return self.counts != {"ok": len(self.rows)} or not self.rows

    @property
    def headline(self) -> str:
        """`50 ok, 1 differs`."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()) or "no case"

    def lines(self) -> list[str]:
        """A line a configuration and element type, then what is wrong; as wide as the terminal."""
        head = f"{self.kernel}: {self.headline}  (Triton {self.triton}, interpreted)"
        width = _label_width(self.rows)
        columns = f"{'configuration':<{width}}{'dtype':<8}{'cases':>6}{'ok':>6}{'max abs':>11}{'of tolerance':>14}"
        wrong = [row for row in self.rows if row.verdict != "ok"]
        told = [line for row in wrong[:MOST_TOLD] for line in _paragraph(row)]
        if len(wrong) > MOST_TOLD:
            told.append(f"and {len(wrong) - MOST_TOLD:,} more (--json lists all)")
        notes = sorted({f"{row.dtype}: {row.reason}" for row in self.rows if row.verdict == "ok" and row.reason})
        where = cut(self.file)
        noted = [line for note in notes for line in paragraph(f"~ {note}", later="  ")]
        blank = [""] if told or noted else []
        return [cut_end(head), where, "", columns, *_groups(self.rows, width), *blank, *told, *noted]


@action("kernel.check", result=KernelCheckResult, needs=("torch", "triton"), extra="torch,triton")
@dataclass(frozen=True, kw_only=True)
class KernelCheck:
    """Run a Triton kernel in the interpreter beside its reference, with guards around everything it may write."""

    kernel: str = param("Kernel by name, or path of a file with one", positional=True)
    dtype: tuple[str, ...] = param("Element types, such as bf16; default all the kernel takes", default=())
    config: str = param("Only configurations whose label holds this", default="")
    limit: float = param("CPU time one case may take", default=60.0, kind="duration", ge=1, unit="s")
    workers: int = param("Processes at a time; 0 takes every CPU where there are many cases", default=0, ge=0, le=1024)

    def perform(self, run: Run) -> KernelCheckResult:
        """Run every case in a process of its own; UsageError for a kernel that is not known."""
        from hfbench.gpu.kernels.interpret import interpret_all
        from hfbench.gpu.kernels.loading import find

        report = interpret_all(
            find(self.kernel),
            dtypes=self.dtype,
            config=self.config,
            seconds=self.limit,
            workers=self.workers,
            watch=lambda done, total: run.progress("check", done, total),
            loading=lambda seconds: run.progress("load the file", seconds, unit="s"),
        )
        counts: Counter[str] = Counter(row.verdict for row in report.rows)
        return KernelCheckResult(
            kernel=report.kernel, file=report.file, triton=report.triton, rows=report.rows, counts=dict(counts)
        )


def _label_width(rows: tuple[CheckRow, ...]) -> int:
    """Cells of the first column: more than LABEL where a label needs them and the line has them."""
    longest = max((cells(row.config) + 1 for row in rows), default=0)
    return max(LABEL, min(longest, room(LABEL)))


def _groups(rows: tuple[CheckRow, ...], width: int) -> Iterator[str]:
    for (config, dtype), alike in groupby(rows, lambda row: (row.config, row.dtype)):
        cases = list(alike)
        fine = sum(row.verdict == "ok" for row in cases)
        apart = max((row.max_abs for row in cases if row.max_abs is not None), default=None)
        worst = max((row.worst for row in cases if row.worst is not None), default=None)
        figures = f"{'-' if apart is None else f'{apart:.2g}':>11}{'-' if worst is None else f'{worst:.2g}':>14}"
        label = clip(config, width - 1, ellipsis="...")
        yield f"{label:<{width}}{dtype:<8}{len(cases):>6}{fine:>6}{figures}"


def _paragraph(row: CheckRow) -> list[str]:
    sizes = " ".join(f"{axis}={size}" for axis, size in row.shape.items())
    text = f"x  {row.config} {row.dtype} {sizes}: {row.verdict}: {row.reason}"
    return paragraph(text, most=4, later="   ")
