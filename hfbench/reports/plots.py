"""The pictures of a report as SVG that takes its colours from the page: one drawing for light and dark."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hfbench.gpu.timing.statistics import median, median_deviation
from hfbench.reports.document import BarPlot, HeatPlot, ParetoPlot, Plot, RatioPlot, SamplesPlot
from hfbench.reports.scale import Scale
from hfbench.reports.svg_page import BAD, BAND, FIRST, GOOD, INK, MUTED, OPEN, PAPER, SECOND, SETTINGS, STEPS, for_page
from hfbench.text import clip
from hfbench.units import show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 8.6
"""Inches; 72 points each."""
LABEL = 46
FAR = 12.0
"""MADs above the median from which a sample is told in words, as it would press all others flat."""
WORD_COLOURS = {"FASTER": GOOD, "SLOWER": BAD, "SAME": INK}


def svg(plot: Plot, number: int) -> str:
    """A picture as an `<svg>` element; `number` keeps its ids apart from those of others on the page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        match plot:
            case SamplesPlot():
                figure = _samples(Figure(figsize=(WIDTH, 2.6), layout="constrained"), plot)
            case HeatPlot():
                height = 1.2 + 0.42 * len(plot.rows)
                figure = _heat(Figure(figsize=(WIDTH, height), layout="constrained"), plot)
            case BarPlot():
                height = 0.9 + 0.28 * len(plot.names)
                figure = _bars(Figure(figsize=(WIDTH, height), layout="constrained"), plot)
            case ParetoPlot():
                figure = _pareto(Figure(figsize=(WIDTH, 3.6), layout="constrained"), plot)
            case RatioPlot():
                height = 0.9 + 0.28 * len(plot.names)
                figure = _ratios(Figure(figsize=(WIDTH, height), layout="constrained"), plot)
        out = io.StringIO()
        with warnings.catch_warnings():  # a glyph that only the font for measuring lacks: the page has fonts of its own
            warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return for_page(out.getvalue(), number, plot.title)


def _samples(figure: Figure, plot: SamplesPlot) -> Figure:
    """Points in the order taken, and beside them how they are distributed."""
    from matplotlib.ticker import MaxNLocator

    scale = Scale([y for line in plot.lines for y in line.ys], plot.unit)
    axes, beside = figure.subplots(1, 2, width_ratios=(5, 1), sharey=True)
    for line, colour in zip(plot.lines, (FIRST, SECOND), strict=False):
        ys = [scale(y) for y in line.ys]
        axes.plot(range(1, len(ys) + 1), ys, "o", color=colour, markersize=3.2, markeredgewidth=0)
        axes.axhline(median(ys), color=colour, linewidth=1, linestyle="--")
        beside.hist(ys, bins=min(40, max(8, len(ys) // 8)), orientation="horizontal", color=colour, alpha=0.75)
    axes.set_title(plot.title)
    axes.set_xlabel("sample")
    for each in (axes, beside):
        each.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8 if each is axes else 3))
    axes.set_ylabel(scale.unit)
    every = sorted(scale(y) for line in plot.lines for y in line.ys)
    top = max(y for y in every if y <= median(every) + FAR * max(median_deviation(every), 0.01 * median(every)))
    room = (top - every[0] or top or 1.0) * 0.08
    axes.set_ylim(every[0] - room, top + room)
    if beyond := sum(y > top for y in every):
        axes.annotate(
            f"{beyond} above, up to {show_value(every[-1] * scale.size, plot.unit)}",
            (1, 1),
            xycoords="axes fraction",
            ha="right",
            va="top",
            fontsize=9,
            color=MUTED,
        )
    beside.set_xlabel("count")
    return figure


def _heat(figure: Figure, plot: HeatPlot) -> Figure:
    """A field a cell with its value in words; the best is framed, with a broken line where that is undecided."""
    from matplotlib.patches import Rectangle

    axes = figure.subplots()
    known = [value for row in plot.values for value in row if value is not None]
    best = (min if plot.lower_is_better else max)(known, default=None)
    for y, row in enumerate(plot.values):
        for x, value in enumerate(row):
            colour = "none" if value is None else STEPS[_step(value, known, plot.lower_is_better)]
            framed = value is not None and value == best
            field = Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, edgecolor=INK if framed else PAPER)
            field.set(linewidth=2 if framed else 1, zorder=3 if framed else 2)
            field.set_linestyle("--" if framed and plot.undecided else "-")
            axes.add_patch(field)
            told = "-" if value is None else show_value(value, plot.unit)
            told += "\nundecided" if framed and plot.undecided else ""
            axes.text(x, y, told, ha="center", va="center", fontsize=9, zorder=4)
    axes.set_xlim(-0.5, len(plot.columns) - 0.5)
    axes.set_ylim(len(plot.rows) - 0.5, -0.5)
    axes.set_xticks(range(len(plot.columns)), [clip(each, LABEL) for each in plot.columns])
    axes.set_yticks(range(len(plot.rows)), [clip(each, LABEL) for each in plot.rows])
    axes.set_xlabel(clip(plot.x, LABEL))
    axes.set_ylabel(clip(plot.y, LABEL))
    axes.set_title(plot.title)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    _no_spines(axes)
    return figure


def _bars(figure: Figure, plot: BarPlot) -> Figure:
    """A bar a cell, with the interval of its median."""
    scale = Scale(plot.values, plot.unit)
    axes = figure.subplots()
    places = range(len(plot.names))
    axes.barh(places, [scale(value) for value in plot.values], height=0.62, color=FIRST)
    for place, low, high in zip(places, plot.low, plot.high, strict=True):
        if low is not None and high is not None:
            axes.plot([scale(low), scale(high)], [place, place], color=INK, linewidth=1.6, solid_capstyle="butt")
    axes.set_xlabel(scale.unit)
    _rows(axes, plot.names, plot.title)
    return figure


def _pareto(figure: Figure, plot: ParetoPlot) -> Figure:
    """Points, and the line through those that nothing beats in both."""
    across, up = Scale([x for x, _, _ in plot.points], plot.x_unit), Scale([y for _, y, _ in plot.points], plot.y_unit)
    axes = figure.subplots()
    front = sorted((across(plot.points[place][0]), up(plot.points[place][1])) for place in plot.front)
    axes.plot(*zip(*front, strict=True), color=GOOD, linewidth=1.4, drawstyle="steps-post", zorder=2)
    for place, (x, y, name) in enumerate(plot.points):
        at, best = (across(x), up(y)), place in plot.front
        axes.plot(at[:1], at[1:], "o", color=GOOD if best else MUTED, markersize=6 if best else 4, zorder=3)
        if best:
            axes.annotate(clip(name, LABEL), at, textcoords="offset points", xytext=(6, -11), fontsize=8.5)
    axes.set_xlabel(f"{plot.x}, {across.unit} (less is better)")
    axes.set_ylabel(f"{plot.y}, {up.unit}")
    axes.set_title(plot.title)
    axes.margins(0.12)
    return figure


def _ratios(figure: Figure, plot: RatioPlot) -> Figure:
    """A ratio a row with its interval; the band in the middle is what does not matter."""
    axes = figure.subplots()
    axes.axvspan(1 - plot.within, 1 / (1 - plot.within), color=BAND, linewidth=0)
    axes.axvline(1, color=MUTED, linewidth=1)
    for place, ((ratio, low, high), word) in enumerate(zip(plot.ratios, plot.words, strict=True)):
        colour = WORD_COLOURS.get(word, OPEN)
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot([ratio], [place], "o", color=colour, markersize=5)
    axes.set_xscale("log")
    ends = [end for ratio, low, high in plot.ratios for end in (ratio, low or ratio, high or ratio) if end > 0]
    ticks = _ratio_ticks(min(ends), max(ends))
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(min(*ends, ticks[0]) * 0.99, max(*ends, ticks[-1]) * 1.01)
    _rows(axes, plot.names, plot.title)
    return figure


def _rows(axes: Axes, names: Sequence[str], title: str) -> None:
    axes.set_yticks(range(len(names)), [clip(each, LABEL) for each in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_title(title)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _no_spines(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios on both sides of 1, near enough to each other for the span."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0):
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= 8:
            return [round(place * step, 4) for place in range(max(first, 1 if step >= 1 else 0), last + 1) if place > 0]
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    return [2.0**power for power in powers]


def _step(value: float, known: Sequence[float], lower_is_better: bool) -> int:
    """Which colour a value has, by the logarithm where all are above zero: 0 is the best."""
    least, most = min(known), max(known)
    if least == most:
        return 0
    share = math.log(value / least) / math.log(most / least) if least > 0 else (value - least) / (most - least)
    return round((share if lower_is_better else 1 - share) * (len(STEPS) - 1))
