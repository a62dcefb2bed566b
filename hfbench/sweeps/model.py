"""What a sweep is right now: frozen pictures for screens, tables and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from hfbench.jobs.doubt import SIGN
from hfbench.units import show_value

Plain: TypeAlias = str | int | float | bool | None
"""What an axis of a sweep can have as a value."""
SweepState: TypeAlias = Literal["running", "finished", "stopped", "interrupted"]
CellState: TypeAlias = Literal["queued", "running", "finished", "failed", "skipped"]
Better: TypeAlias = Literal["lower", "higher", ""]

EARLIER = {"done": "finished"}
"""Words of earlier journals, by what they are called now."""
OVER: tuple[CellState, ...] = ("finished", "failed", "skipped")
NOT_RUN = "not run"
"""What a queued cell of a sweep is called that nobody conducts."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a cell's result. `unit` and `better` are empty where nothing tells them; `doubt` says what speaks
    against it, such as `n=1, busy-machine`."""

    value: float
    unit: str = ""
    better: Better = ""
    doubt: str = ""

    @property
    def text(self) -> str:
        """The number with its unit, and the sign of doubt."""
        return show_value(self.value, self.unit) + (SIGN if self.doubt else "")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis with its values in the order they are run."""

    name: str
    values: tuple[Plain, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellView:
    """One cell. `number` counts from 1; `attempt` is the latest one, 0 before the first; `seconds` is its time so far
    or in all; `progress` is between 0 and 1, None where nobody knows; `expectations` are (passed, failed)."""

    number: int
    values: Mapping[str, Plain]
    state: CellState = "queued"
    reason: str = ""
    on: str = ""
    attempt: int = 0
    jobs: tuple[str, ...] = ()
    seconds: float = 0.0
    progress: float | None = None
    metrics: Mapping[str, Figure] = field(default_factory=dict)
    expectations: tuple[int, int] = (0, 0)
    outputs: str = ""
    """The first digits of the hash of what its steps gave out, such as the tokens of a benchmark; empty without any."""
    verdicts: tuple[str, ...] = ()
    """The words its steps said of their own runs."""

    @property
    def label(self) -> str:
        """The values in words: `dtype=bf16 batch=8`."""
        return " ".join(f"{name}={value_text(value)}" for name, value in self.values.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepSnapshot:
    """One sweep. `seconds` is the time somebody conducted it; `left_s` is an estimate, and `left_from` says from what;
    `newer` that a newer hfbench wrote the folder, of which only what is known here can be shown; `lost` how many cells
    began of which the journal tells nothing, because it was emptied."""

    name: str
    folder: Path
    state: SweepState
    reason: str = ""
    made: float = 0.0
    seconds: float = 0.0
    left_s: float | None = None
    left_from: str = ""
    on: tuple[str, ...] = ("local",)
    axes: tuple[Axis, ...] = ()
    cells: tuple[CellView, ...] = ()
    newer: bool = False
    lost: int = 0

    def counts(self) -> dict[CellState, int]:
        """How many cells are in each state, the states in the order of a cell's life."""
        found: dict[CellState, int] = dict.fromkeys(("queued", "running", "finished", "failed", "skipped"), 0)
        for cell in self.cells:
            found[cell.state] += 1
        return found

    @property
    def in_doubt(self) -> bool:
        """Whether any figure of it is."""
        return any(figure.doubt for cell in self.cells for figure in cell.metrics.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRow:
    """One line of a list of sweeps."""

    name: str
    folder: Path
    state: SweepState
    reason: str
    made: float
    seconds: float
    on: tuple[str, ...]
    counts: Mapping[CellState, int]

    @property
    def cells(self) -> int:
        """Cells in all."""
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """One metric over two axes: `values[row][column]` is None where no cell has it. `rows` are values of the axis `y`,
    `columns` those of `x`; `best` is (row, column); `lacking` counts finished cells without the metric.

    Several cells at one place, which differ in a further axis, are told by their best value, and counted in `merged`.
    """

    metric: str
    unit: str
    better: Better
    x: str
    y: str
    columns: tuple[Plain, ...]
    rows: tuple[Plain, ...]
    values: tuple[tuple[float | None, ...], ...]
    cells: tuple[tuple[int | None, ...], ...]
    best: tuple[int, int] | None
    lacking: int
    merged: int
    undecided: bool = False
    """Whether the samples may as well put another cell in front of the best one."""


def state_word(state: CellState, sweep: SweepState) -> str:
    """What a cell's state is called: nothing is queued where nobody conducts the sweep."""
    return NOT_RUN if state == "queued" and sweep != "running" else state


def counted_cells(counts: Mapping[CellState, int], sweep: SweepState, resume: str = "") -> str:
    """The states that cells are in, with their numbers: `7 finished, 1 running, 4 queued`; `resume` says how those that
    were not run are, where nobody conducts the sweep."""
    order: tuple[CellState, ...] = ("finished", "running", "queued", "failed", "skipped")
    told = ", ".join(f"{counts[state]:,} {state_word(state, sweep)}" for state in order if counts[state]) or "no cells"
    return f"{told} ({resume})" if resume and counts["queued"] and sweep != "running" else told


def value_text(value: Plain) -> str:
    """A value of an axis as a script would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
