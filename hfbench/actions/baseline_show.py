"""baseline.show: one measurement that was kept under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.compare.baselines import Baseline
from hfbench.line_width import cut, cut_end
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_value

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

MOST_CELLS = 40


@dataclass(frozen=True, kw_only=True)
class KeptCell:
    """One cell of a baseline: its place, where it ran, and the medians of its metrics by name."""

    place: str
    action: str
    job: str
    host: str
    headline: str
    medians: dict[str, tuple[float, str]]


@dataclass(frozen=True, kw_only=True)
class BaselineShowResult:
    """One baseline with what it holds."""

    baseline: Baseline
    params: dict[str, Any]
    cells: tuple[KeptCell, ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Name and what it is a copy of."""
        return f"{self.baseline.name}: a copy of {self.baseline.of}"

    def lines(self) -> list[str]:
        """Settings, then the medians of each cell."""
        told = [cut(printable(self.headline))]
        told += [cut_end(f"  {name}  {printable(str(value))}") for name, value in self.params.items()]
        for cell in self.cells[:MOST_CELLS]:
            told += [
                "",
                cut(
                    printable(" ".join(filter(None, (cell.place, cell.action, f"on {cell.host}" if cell.host else ""))))
                ),
            ]
            told += [
                f"  {printable(name):<22}{show_value(value, unit):>14}" for name, (value, unit) in cell.medians.items()
            ]
        if len(self.cells) > MOST_CELLS:
            told += [f"and {counted(len(self.cells) - MOST_CELLS, 'more cell')}"]
        return [*told, *map(printable, self.notes)]


@action("baseline.show", result=BaselineShowResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineShow:
    """Show a baseline: its settings, where it ran, and the medians of its metrics."""

    name: str = param("Name of the baseline", positional=True, kind="baseline")

    def perform(self, run: Run) -> BaselineShowResult:
        """Read its file."""
        from hfbench.compare.baselines import describe, read_baseline
        from hfbench.compare.metrics import metrics_of

        subject = read_baseline(self.name)
        cells = tuple(
            KeptCell(
                place=each.place,
                action=each.action,
                job=each.job,
                host=str(each.environment.get("host") or ""),
                headline=str((each.result or {}).get("headline") or each.reason),
                medians={name: (m.statistic("p50") or 0.0, m.unit) for name, m in metrics_of(each.result).items()},
            )
            for each in subject.measured
        )
        params = subject.measured[0].params if len(subject.measured) == 1 else {}
        return BaselineShowResult(baseline=describe(self.name), params=params, cells=cells, notes=subject.notes)
