"""A report before it has a format: sections of facts, tables, plots and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal["", "good", "bad", "open", "quiet"]
"""What a word of a cell means, for formats that can show it; the word says it too."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table. `best` marks the best of its column."""

    text: str
    tone: Tone = ""
    best: bool = False


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Points:
    """Sentences, each a point of a list."""

    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells below names of columns; `numeric` are the columns that are set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Code:
    """Text that is kept as it is: a command, a script, the lines of a result."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Line:
    """One series: values in the order taken."""

    name: str
    ys: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class SamplesPlot:
    """Samples in the order taken, their median, and how they are distributed."""

    title: str
    unit: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class HeatPlot:
    """A metric over two axes; None where no cell has it. `undecided` where samples do not decide which is the best."""

    title: str
    unit: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    lower_is_better: bool
    undecided: bool = False


@dataclass(frozen=True, kw_only=True)
class BarPlot:
    """A metric of each cell with its interval; `low` and `high` may be None."""

    title: str
    unit: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class ParetoPlot:
    """Latency against throughput; `front` are the points that nothing beats in both."""

    title: str
    x: str
    x_unit: str
    y: str
    y_unit: str
    points: tuple[tuple[float, float, str], ...]
    front: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RatioPlot:
    """Ratios with their intervals around 1; beyond `within` a difference matters."""

    title: str
    names: tuple[str, ...]
    ratios: tuple[tuple[float, float | None, float | None], ...]
    words: tuple[str, ...]
    within: float


Plot: TypeAlias = SamplesPlot | HeatPlot | BarPlot | ParetoPlot | RatioPlot
Block: TypeAlias = Text | Points | Facts | Table | Code | Plot


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One of the few numbers a reader should see first."""

    name: str
    value: str
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report. `made` is when, in words; `warnings` stand before everything else."""

    title: str
    subtitle: str
    made: str
    figures: tuple[Figure, ...] = ()
    warnings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = field(default=())
    footer: str = ""
