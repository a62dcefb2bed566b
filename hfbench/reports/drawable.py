"""Which pictures can be drawn: numbers of results may be far beyond what an axis can show."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.reports.document import BarPlot, HeatPlot, ParetoPlot, Plot, RatioPlot, SamplesPlot, Text

LEAST, MOST = 1e-30, 1e30
"""Sizes between which a value can be drawn beside others, whatever its unit; no machine gives others."""


def drawn_or_told(plot: Plot) -> Plot | Text:
    """A plot, or a sentence in its place where a value of it is too large or too small to be drawn."""
    if all(value == 0 or LEAST < abs(value) < MOST for value in _values(plot)):
        return plot
    return Text(text=f"There is no picture of {plot.title}: a value is beyond what can be drawn.", tone="open")


def _values(plot: Plot) -> Iterator[float]:
    match plot:
        case SamplesPlot():
            yield from (value for line in plot.lines for value in line.ys)
        case HeatPlot():
            yield from (value for row in plot.values for value in row if value is not None)
        case BarPlot():
            yield from (value for each in (plot.values, plot.low, plot.high) for value in each if value is not None)
        case ParetoPlot():
            yield from (value for x, y, _ in plot.points for value in (x, y))
        case RatioPlot():
            yield from (value for ratio in plot.ratios for value in ratio if value is not None)
