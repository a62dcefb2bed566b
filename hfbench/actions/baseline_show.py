"""baseline.show: one measurement that was kept under a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.compare.baselines import Baseline
from hfbench.line_width import cut, cut_end, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_value

if TYPE_CHECKING:
    from hfbench.compare.metrics import Metric
    from hfbench.jobs.run import Run

MOST_CELLS = 40


HEAD = f"  {'metric':<20}{'p50':>12}  {'95 % of median':<25}{'n':>5}  verdict"


@dataclass(frozen=True, kw_only=True)
class KeptMetric:
    """One metric of a cell: its median in `unit`, the 95 % interval of that, how many samples, what speaks against."""

    p50: float
    unit: str
    low: float | None
    high: float | None
    n: int
    verdict: str


@dataclass(frozen=True, kw_only=True)
class KeptCell:
    """One cell of a baseline: its place, where it ran, its metrics by name, and why it is not to be believed."""

    place: str
    action: str
    job: str
    host: str
    headline: str
    metrics: dict[str, KeptMetric]
    doubts: tuple[str, ...] = ()


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
        """Settings, then the metrics of each cell."""
        told = [cut(printable(self.headline))]
        told += [cut_end(f"  {name}  {printable(str(value))}") for name, value in self.params.items()]
        for cell in self.cells[:MOST_CELLS]:
            told += ["", *_cell(cell)]
        if len(self.cells) > MOST_CELLS:
            told += [f"and {counted(len(self.cells) - MOST_CELLS, 'more cell')}"]
        return [*told, *map(printable, self.notes)]


def _cell(cell: KeptCell) -> Iterator[str]:
    """A cell with a table of its metrics; the doubts stand below."""
    yield cut(printable(" ".join(filter(None, (cell.place, cell.action, f"on {cell.host}" if cell.host else "")))))
    if cell.metrics:
        yield HEAD
    for name, each in cell.metrics.items():
        around = "too few samples"
        if each.low is not None and each.high is not None:
            around = f"{show_value(each.low, each.unit)} .. {show_value(each.high, each.unit)}"
        shown = f"{show_value(each.p50, each.unit):>12}  {around:<25}{each.n:>5}  {each.verdict}"
        yield cut_end(f"  {printable(name):<20}{shown}")
    for why in cell.doubts:
        yield from paragraph(printable(why), first="  doubt  ", later=" " * 9)


@action("baseline.show", result=BaselineShowResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineShow:
    """Show a baseline: its settings, where it ran, and its metrics with intervals, sample counts and verdicts."""

    name: str = param("Name of the baseline", positional=True, kind="baseline")

    def perform(self, run: Run) -> BaselineShowResult:
        """Read its file."""
        from hfbench.compare.baselines import describe, read_baseline
        from hfbench.compare.doubts import doubts
        from hfbench.compare.metrics import metrics_of

        subject = read_baseline(self.name)
        cells = tuple(
            KeptCell(
                place=each.place,
                action=each.action,
                job=each.job,
                host=str(each.environment.get("host") or ""),
                headline=str((each.result or {}).get("headline") or each.reason),
                metrics={name: _kept(metric, each.result) for name, metric in metrics_of(each.result).items()},
                doubts=tuple(doubts(each)),
            )
            for each in subject.measured
        )
        params = subject.measured[0].params if len(subject.measured) == 1 else {}
        return BaselineShowResult(baseline=describe(self.name), params=params, cells=cells, notes=subject.notes)


def _kept(metric: Metric, result: Mapping[str, Any] | None) -> KeptMetric:
    """A metric with the words that are said of it: of its own samples, and of the run as a whole."""
    from hfbench.compare.doubts import words_about
    from hfbench.compare.intervals import told_interval

    around = told_interval(metric)
    return KeptMetric(
        p50=metric.statistic("p50") or 0.0,
        unit=metric.unit,
        low=around.low if around else None,
        high=around.high if around else None,
        n=metric.count,
        verdict=", ".join(words_about(metric, result)),
    )
