"""Grids, best cells, fronts and tables say what the cells say."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_folder import Written

from hfbench.commands.sweep import describe
from hfbench.errors import UsageError
from hfbench.jobs.doubt import MEANING
from hfbench.sweeps.grid import undecided
from hfbench.sweeps.model import CellView, Figure, SweepSnapshot
from hfbench.sweeps.snapshot import best_cell, grid, metric_names, pareto
from hfbench.sweeps.table import csv_of_table, lines_of_table, notes_of_table, plain_table, table
from hfbench.widgets.glyphs import UNICODE
from hfbench.widgets.sweep_rows import head_lines

Four = Callable[..., Written]
POINTS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30)


@pytest.fixture
def found(four: Four) -> SweepSnapshot:
    """Three cells are done, one of which lacks a metric; one failed."""
    sweep = four()
    for cell, metrics in enumerate(
        [{"tpot": 4.0, "rate": (1.0, "tok/s")}, {"tpot": 2.0}, {"tpot": 3.0, "rate": (8.0, "tok/s")}], 1
    ):
        sweep.begin(cell).finish(cell, **metrics)
    return sweep.begin(4).finish(4, "failed", reason="out of device memory").read()


def test_a_grid_has_none_where_a_cell_lacks_the_metric_and_counts_those(found: SweepSnapshot) -> None:
    told = grid(found, "rate.p50", x="batch", y="dtype")
    assert (told.rows, told.columns, told.values) == (("fp32", "bf16"), (1, 2), ((1.0, None), (8.0, None)))
    assert (told.best, told.lacking, told.unit, told.better) == ((1, 0), 1, "tok/s", "higher")


def test_an_axis_left_out_of_a_grid_is_told_by_its_best_cells(found: SweepSnapshot) -> None:
    told = grid(found, "tpot.p50", x="batch", y="")
    assert (told.values, told.cells, told.merged, told.best) == (((3.0, 2.0),), ((3, 2),), 1, (0, 1))


def test_the_best_cell_is_the_least_time_or_the_greatest_rate_and_none_where_nothing_tells(
    found: SweepSnapshot,
) -> None:
    assert [
        cell and cell.number for cell in (best_cell(found, m) for m in ("tpot.p50", "rate.p50", "tpot.n", "x"))
    ] == [
        2,
        3,
        None,
        None,
    ]


def test_medians_come_first_among_the_metrics(found: SweepSnapshot) -> None:
    assert metric_names(found)[:2] == ("tpot.p50", "rate.p50")
    assert metric_names(found)[-1] == "rate.n"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (lambda s: grid(s, "tpot.p5", "batch", "dtype"), "no cell has a metric 'tpot.p5'.*did you mean 'tpot.p50'"),
        (lambda s: grid(s, "tpot.p50", "bach", "dtype"), "there is no axis 'bach'.*did you mean 'batch'"),
        (lambda s: table(s, ["nope"]), "no cell has a metric 'nope'.*some are tpot.p50"),
    ],
)
def test_what_no_cell_has_is_refused_with_what_there_is(
    found: SweepSnapshot, asked: Callable[[SweepSnapshot], object], told: str
) -> None:
    with pytest.raises(UsageError, match=told.replace("did", "[Dd]id").replace("some", "[Ss]ome")):
        asked(found)


@given(POINTS)
def test_the_front_holds_all_that_no_other_cell_beats_and_nothing_else(points: list[tuple[int, int]]) -> None:
    cells = tuple(
        CellView(number=n, values={}, metrics={"t": Figure(t, "s", "lower"), "r": Figure(r, "tok/s", "higher")})
        for n, (t, r) in enumerate(points, 1)
    )
    front = pareto(SweepSnapshot(name="x", folder=None, state="finished", cells=cells), "t", "r")  # type: ignore[arg-type]

    def beaten(t: int, r: int) -> bool:
        return any(a <= t and b >= r and (a, b) != (t, r) for a, b in points)

    assert set(front) == {n for n, (t, r) in enumerate(points, 1) if not beaten(t, r)}
    assert [points[n - 1][0] for n in front] == sorted(points[n - 1][0] for n in front)


def test_a_cell_in_doubt_beats_none_that_is_believed_and_stands_on_the_front_beside_them() -> None:
    def cell(number: int, latency: float, rate: float, doubt: str = "") -> CellView:
        metrics = {"t": Figure(latency, "s", "lower", doubt), "r": Figure(rate, "tok/s", "higher")}
        return CellView(number=number, values={}, metrics=metrics)

    def front(*cells: CellView) -> tuple[int, ...]:
        return pareto(SweepSnapshot(name="x", folder=Path("x"), state="finished", cells=cells), "t", "r")

    assert front(cell(1, 1, 9, "n=1"), cell(2, 2, 8), cell(3, 3, 7)) == (1, 2)
    assert front(cell(1, 1, 9), cell(2, 2, 8, "n=1"), cell(3, 3, 7)) == (1,)
    assert front(cell(1, 1, 9, "n=1"), cell(2, 2, 8, "n=1")) == (1,), "all in doubt: the front is what there is"


def test_few_samples_or_a_verdict_against_the_run_put_a_figure_in_doubt_everywhere(four: Four) -> None:
    sweep = four()
    summary = {"p50": 2.0, "p90": 2.5, "p99": 2.9, "unit": "s"}
    known = {"n": 12, "ci_low": 1.9, "ci_high": 2.1}
    for number, (more, words) in enumerate(
        [({"n": 1}, ["few-samples"]), (known, ["busy-machine"]), (known, ["few-samples"])], 1
    ):
        sweep.begin(number).finish(
            number, summaries={"tpot": {**summary, **more}}, verdicts=[{"word": each} for each in words]
        )
    snapshot = sweep.read()
    found = [cell.metrics for cell in snapshot.cells[:3]]
    assert [each["tpot.p50"].doubt for each in found] == ["n=1", "busy-machine", ""]
    assert [sorted(set(each) & {"tpot.p90", "tpot.p99"}) for each in found] == [[], ["tpot.p90"], ["tpot.p90"]]
    assert [cell.verdicts for cell in snapshot.cells[:3]] == [("few-samples",), ("busy-machine",), ("few-samples",)]
    told = table(snapshot, ["tpot.p50"])
    shown = [line.split("finished")[1].split("  ") for line in lines_of_table(told)[1:4]]
    assert [next(each for each in cells if "2.00" in each).strip() for cells in shown] == [
        "2.00 s *?",
        "2.00 s?",
        "2.00 s",
    ]
    assert MEANING in notes_of_table(told)
    rows = list(csv.DictReader(io.StringIO(csv_of_table(told))))
    assert [(row["tpot.n"], row["verdicts"]) for row in rows[:2]] == [("1", "few-samples"), ("12", "busy-machine")]
    with pytest.raises(UsageError, match="P99 takes 100 samples, and no cell has as many of tpot"):
        table(snapshot, ["tpot.p99"])


def test_a_table_says_which_cells_lack_a_metric_and_which_failed(found: SweepSnapshot) -> None:
    told = table(found, ["tpot.p50", "rate.p50"])
    lines = lines_of_table(told)
    assert lines[0].split() == ["CELL", "dtype", "batch", "STATE", "tpot.p50", "rate.p50", "OUTPUTS"]
    assert "2.00 s *" in lines[2]
    assert "8 tok/s *" in lines[3]
    assert notes_of_table(told) == [
        "1 of the finished cells lacks rate.p50",
        "best tpot.p50, undecided: the intervals of medians overlap, or too few samples tell none",
        "best rate.p50, undecided: the intervals of medians overlap, or too few samples tell none",
        MEANING,
        "cell 4 (dtype=bf16 batch=2) failed: out of device memory",
    ]
    assert [row["metrics"]["rate.p50"] and row["metrics"]["rate.p50"]["value"] for row in plain_table(told)] == [
        1.0,
        None,
        8.0,
        None,
    ]
    rows = list(csv.DictReader(io.StringIO(csv_of_table(told))))
    assert [row["rate.p50 [tok/s]"] for row in rows] == ["1.0", "", "8.0", ""]


@pytest.mark.parametrize(
    ("intervals", "open_"),
    [
        ([(0.9, 1.1), (1.9, 2.1)], False),
        ([(0.9, 1.95), (1.9, 2.1)], True),
        ([(0.9, 1.1), None], True),
        ([None, (1.9, 2.1)], True),
        ([None], False),
    ],
)
def test_a_best_cell_whose_interval_another_one_reaches_is_marked_as_undecided(
    intervals: list[tuple[float, float] | None], open_: bool
) -> None:
    cells = []
    for number, (interval, median) in enumerate(zip(intervals, (1.0, 2.0), strict=False), 1):
        parts = {
            "p50": median,
            "n": 3.0,
            **(dict(zip(("ci_low", "ci_high"), interval, strict=True)) if interval else {}),
        }
        metrics = {f"tpot.{name}": Figure(value, "s", "lower") for name, value in parts.items()}
        cells.append(CellView(number=number, values={"n": number}, state="finished", metrics=metrics))
    snapshot = SweepSnapshot(name="s", folder=Path("s"), state="finished", cells=tuple(cells))
    told = table(snapshot, ["tpot.p50"])
    assert undecided(snapshot, "tpot.p50") == open_
    assert lines_of_table(told)[1].endswith("1.00 s *?" if open_ else "1.00 s *")
    assert any("best tpot.p50, undecided" in note for note in notes_of_table(told)) == open_
    assert any("best, undecided, tpot.p50" in line for line in describe(snapshot)) == open_
    head = "".join(part for line in head_lines(snapshot, cells[0], "tpot.p50", 80, UNICODE) for part, _ in line)
    assert ("best, undecided tpot.p50" in head) == open_
