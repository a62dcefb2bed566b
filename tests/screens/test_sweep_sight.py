"""What is seen of a sweep from where the user stands, worked out from folders as a conductor writes them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sweep_folders import MadeSweep, generate_metrics, make_sweep

from hfbench.screens.sweep_sight import STATE, Look, combinations, sight_of
from hfbench.sweeps.snapshot import read_sweep

AXES = {"dtype": ["fp32", "bf16"], "batch": [1, 4, 16]}


@pytest.fixture
def made(tmp_path: Path) -> MadeSweep:
    """Six cells: three measured, one failed, one that measured nothing, one queued."""
    sweep = make_sweep(tmp_path, "s", AXES, at=time.time() - 60)
    for number in range(1, 6):
        sweep.step(number, f"job-{number}", at=number)
    for number, tpot in ((1, 0.010), (2, 0.012), (4, 0.006)):
        sweep.result(number, generate_metrics(tpot, sweep.cells[number - 1]["batch"]))
        sweep.ended(number, "finished", at=number + 1)
    sweep.ended(3, "failed", reason="out of memory", at=4)
    sweep.ended(5, "finished", at=6)
    return sweep


def texts(made: MadeSweep, look: Look) -> list[list[str]]:
    return [[cell.text for cell in row] for row in sight_of(read_sweep(made.folder.path), look).map.cells]


def test_without_a_metric_each_cell_says_what_it_is_doing(made: MadeSweep) -> None:
    sight = sight_of(read_sweep(made.folder.path), Look())
    assert (sight.look.metric, sight.look.x, sight.look.y) == (STATE, "batch", "dtype")
    assert texts(made, Look()) == [["ok", "ok", "x failed"], ["ok", "ok", "not run"]]


def test_numbers_are_in_one_unit_and_what_lacks_the_metric_says_why(made: MadeSweep) -> None:
    look = Look(metric="tpot.p50")
    assert texts(made, look) == [["10.0", "12.0", "x failed"], ["6.00", "~ none", "not run"]]
    sight = sight_of(read_sweep(made.folder.path), look)
    assert sight.map.title == "tpot.p50 in ms, lower is better"
    assert [cell.number for row in sight.map.cells for cell in row if cell.best] == [4]
    assert not any(cell.undecided for row in sight.map.cells for cell in row), "no samples, nothing to doubt"
    assert sight.map.cells[0][1].level == 8
    assert sight.map.cells[1][0].level == 1
    assert sight.best is not None
    assert (sight.leading, sight.best.number) == ("tpot.p50", 4)


def test_a_best_cell_that_samples_do_not_tell_apart_says_so(home: Path) -> None:
    sweep = make_sweep(home / "sweeps", "close", {"batch": [1, 2, 3]}, at=time.time())
    for number, (low, middle, high) in enumerate([(9, 10, 11), (8, 9.5, 10.5), (20, 21, 22)], 1):
        sweep.result(number, {"tpot": {"p50": middle, "ci_low": low, "ci_high": high, "n": 30, "unit": "s"}})
        sweep.ended(number, "finished", at=number)
    [row] = sight_of(read_sweep(sweep.folder.path), Look(metric="tpot.p50")).map.cells
    assert [(cell.best, cell.undecided) for cell in row] == [(False, False), (True, True), (False, False)]


def test_numbers_in_doubt_are_marked_on_the_map_and_on_the_front(made: MadeSweep) -> None:
    few = {
        name: {"p50": value, "n": 1, "unit": unit}
        for name, value, unit in (("tpot", 0.001, "s"), ("throughput", 900.0, "tok/s"))
    }
    made.result(5, few)
    sight = sight_of(
        read_sweep(made.folder.path), Look(metric="tpot.p50", latency="tpot.p50", throughput="throughput.p50")
    )
    assert [[cell.told for cell in row] for row in sight.map.cells] == [
        ["10.0", "12.0", "x failed"],
        ["6.00", "1.00?", "not run"],
    ]
    assert sight.front is not None
    assert [(point.number, point.doubt) for point in sight.front.best] == [(5, True), (4, False), (2, False)]


def test_axes_change_places(made: MadeSweep) -> None:
    sight = sight_of(read_sweep(made.folder.path), Look(x="dtype"))
    assert (sight.look.x, sight.look.y) == ("dtype", "batch")
    assert sight.map.columns == ("fp32", "bf16")


def test_names_the_sweep_does_not_have_are_replaced(made: MadeSweep) -> None:
    look = Look(metric="nothing", x="none", y="none", fixed={"none": 1}, latency="?", throughput="?")
    full = sight_of(read_sweep(made.folder.path), look).look
    assert (full.metric, full.x, full.y, dict(full.fixed)) == (STATE, "batch", "dtype", {})
    assert (full.latency, full.throughput) == ("ttft.p50", "throughput.p50")


def test_other_axes_are_fixed_and_walked_through(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, "s", {**AXES, "mode": ["eager", "compile"]}, at=time.time())
    for number, values in enumerate(sweep.cells, 1):
        sweep.step(number, f"job-{number}")
        sweep.result(number, generate_metrics(number / 1000, values["batch"]))
        sweep.ended(number, "finished")
    snapshot = read_sweep(sweep.folder.path)
    eager = sight_of(snapshot, Look(metric="tpot.p50"))
    assert dict(eager.look.fixed) == {"mode": "eager"}
    assert combinations(snapshot, eager.look) == [{"mode": "eager"}, {"mode": "compile"}]
    compiled = sight_of(snapshot, Look(metric="tpot.p50", fixed={"mode": "compile"}))
    shown = {cell.number for sight in (eager, compiled) for row in sight.map.cells for cell in row}
    assert shown == set(range(1, 13))


def test_the_front_holds_what_no_cell_beats_and_names_both_metrics(made: MadeSweep) -> None:
    front = sight_of(read_sweep(made.folder.path), Look(latency="tpot.p50", throughput="throughput.p50")).front
    assert front is not None
    # 6 ms gives 167 tok/s, 12 ms at batch 4 gives 333; 10 ms at batch 1 gives 100 and is beaten.
    assert [point.number for point in front.best] == [4, 2]
    assert front.lacking == 1


def test_a_sweep_without_results_says_so_in_place_of_a_front(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, "s", AXES, at=time.time())
    sight = sight_of(read_sweep(sweep.folder.path), Look())
    assert sight.front is None
    assert sight.why_no_front == "no cell has a result yet"
    assert sight.best is None


def test_a_sweep_of_one_axis_is_one_row_and_one_without_axes_one_cell(tmp_path: Path) -> None:
    one = sight_of(read_sweep(make_sweep(tmp_path, "one", {"batch": [1, 2]}, at=0).folder.path), Look())
    assert (one.map.columns, one.map.rows) == (("1", "2"), ("",))
    none = sight_of(read_sweep(make_sweep(tmp_path, "none", {}, at=0).folder.path), Look())
    assert [[cell.text for cell in row] for row in none.map.cells] == [["not run"]]


def test_true_and_one_are_different_values_of_an_axis(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, "s", {"flag": [True, 1]}, at=0)
    sight = sight_of(read_sweep(sweep.folder.path), Look())
    assert [cell.number for row in sight.map.cells for cell in row] == [1, 2]
