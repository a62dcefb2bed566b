"""Sweeps and comparisons as pictures; all sweeps and figures are made up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW
from sweep_folders import MadeSweep, generate_metrics, make_sweep
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.compare.result import CellComparison, CompareResult, Difference, MetricVerdict, Pair, Side, Word
from hfbench.screens.compare import Compared as ComparedMessage
from hfbench.screens.compare import CompareScreen, CompareTable
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.sweep import SweepScreen
from hfbench.screens.sweep_sight import Look
from hfbench.screens.sweeps import SweepsScreen
from hfbench.widgets.form import FieldInput
from hfbench.widgets.heat_grid import HeatGrid
from hfbench.widgets.sweep_panes import CellTable, FrontTable

AXES = {"dtype": ["fp32", "bf16"], "batch": [1, 4, 16, 64], "prompt": [8, 32, 128]}


@pytest.fixture
def sweeps(place: Path) -> Iterator[MadeSweep]:  # noqa: F811
    """One that runs, one that was interrupted and one that is done."""
    root = place / "home" / "sweeps"
    running = make_sweep(root, "decode-dtype", AXES, at=NOW - 90, on=("local", "slurm:debug"))
    for number, values in enumerate(running.cells[:17], 1):
        on = "slurm:debug" if number % 3 == 0 else "local"
        running.step(number, f"2026-01-05T08-00-00-bench.generate-{number:06x}", at=number * 4 - 2, on=on)
        if number == 7:
            running.ended(number, "failed", at=number * 4, reason="CUDA out of memory: 1.2 GiB more than is free")
        elif number == 11:
            running.ended(number, "skipped", at=number * 4, reason="needs triton, which this Python lacks")
        elif number < 17:
            slow = 0.0124 if values["dtype"] == "fp32" else 0.0081
            tpot = slow * (1 + values["batch"] * 0.02) * (1 + values["prompt"] / 600)
            running.result(number, generate_metrics(tpot, values["batch"]))
            running.ended(number, "finished", at=number * 4, seconds=3.9)
    running.hold()
    cut = make_sweep(root, "attention-by-length", {"prompt": [128, 512]}, at=NOW - 7300)
    cut.step(1, "2026-01-05T06-00-00-bench.generate-0000aa", at=2)
    cut.ended(1, "finished", at=9)
    done = make_sweep(root, "batch", {"batch": [1, 2]}, at=NOW - 90_000)
    for number in (1, 2):
        done.step(number, f"2026-01-04T08-00-00-bench.generate-0000b{number}", at=number * 5)
        done.ended(number, "finished", at=number * 5 + 4)
    yield running
    running.let_go()


def compared() -> CompareResult:
    """Two runs on two machines: one metric is clear, one spoiled, one the same."""

    def verdict(metric: str, unit: str, a: float, b: float, width: float, word: Word, **more: Any) -> MetricVerdict:
        told = {"n_a": 412, "n_b": 398, "method": "apart", "better": "higher" if unit == "tok/s" else "lower"} | more
        low, high = b / a - width, b / a + width
        return MetricVerdict(metric=metric, unit=unit, a=a, b=b, ratio=b / a, low=low, high=high, word=word, **told)

    def side(letter: str, tail: str, headline: str) -> Side:
        return Side(
            letter=letter,
            given=tail,
            kind="job",
            title=f"bench.generate {tail}",
            action="bench.generate",
            model="/models/smollm2-135m",
            state="finished",
            made=NOW - 7200,
            cells=1,
            headline=headline,
        )

    throttled = "B: throttled: the card was slowed by heat for 12 % of the time"
    metrics = (
        verdict("tpot", "s", 0.00812, 0.00741, 0.004, Word.FASTER),
        verdict("ttft", "s", 0.0241, 0.0262, 0.011, Word.UNDECIDED, spoiled=(throttled,), would_be="SLOWER"),
        verdict("throughput", "tok/s", 123.2, 134.9, 0.005, Word.FASTER),
        verdict("itl", "s", 0.00806, 0.00809, 0.002, Word.SAME),
    )
    a, b = side("A", "3f9a1c", "tpot 8.12 ms"), side("B", "71c0de", "tpot 7.41 ms")
    differences = (
        Difference(about="setting", name="mode", a="eager", b="cudagraph"),
        Difference(about="software", name="torch", a="2.13.0", b="2.14.0"),
        Difference(about="machine", name="host", a="lab-3", b="lab-4"),
    )
    sentence = "bench.generate of one model; set otherwise: mode; they ran on different hosts"
    cells = (CellComparison(values={}, metrics=metrics),)
    pair = Pair(a=a, b=b, sentence=sentence, differences=differences, cells=cells)
    method = "runs apart: the ratio of medians with its 95 % interval, which must lie beyond 2 % as a whole"
    return CompareResult(sides=(a, b), pairs=(pair,), method=method)


async def looking_from(pilot: Pilot[None], until: Any, look: Look) -> SweepScreen:
    """The page of the sweep that runs, looked at from there."""
    pilot.app.open_sweep("decode-dtype")
    await until(pilot, lambda: isinstance(pilot.app.screen, SweepScreen) and pilot.app.screen.sight)
    screen: SweepScreen = pilot.app.screen
    screen.stand(look)
    await until(pilot, lambda: screen.sight.look.metric == look.metric)
    return screen


@pytest.mark.usefixtures("sweeps")
@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a state and look."""

    def test_sweeps(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            await pilot.press("9")
            await until(pilot, lambda: isinstance(pilot.app.screen, SweepsScreen) and len(pilot.app.screen.rows) == 3)
            await pilot.press("space", "down")

        take(look, scene)

    def test_sweep_states(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            screen = await looking_from(pilot, until, Look())
            screen.query_one(HeatGrid).move_to(7)
            await until(pilot, lambda: screen.cell and screen.cell.number == 7)

        take(look, scene)

    def test_sweep_map(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            screen = await looking_from(pilot, until, Look(metric="tpot.p50"))
            screen.query_one(HeatGrid).move_to(5)
            await pilot.press("space", "right", "right")
            assert screen.marked == [5]

        take(look, scene)

    def test_sweep_cells(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            screen = await looking_from(pilot, until, Look(metric="throughput.p50"))
            await pilot.press("v", *["down"] * 6)
            await until(pilot, lambda: screen.query_one(CellTable).current == "7")

        take(look, scene)

    def test_sweep_front(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            screen = await looking_from(pilot, until, Look(metric="tpot.p50", latency="tpot.p50"))
            await pilot.press("v", "v", "home", "down")
            await until(pilot, lambda: screen.query_one(FrontTable).cursor == 1)

        take(look, scene)

    def test_form_of_a_sweep(self, take: Any, until: Any, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_form("bench.generate", {"model": "/models/smollm2-135m"})
            await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
            screen = pilot.app.screen
            for name, text in (("dtype", "bf16,fp32"), ("batch", "1,8..32*2")):
                field = screen.query_one(f"#field-{name}", FieldInput)
                field.value = text
                await until(pilot, lambda name=name: name in screen.state.axes)
            screen.set_focus(field)
            field.cursor_position = len(field.value)
            await until(pilot, lambda: "model" in screen.facts)

        take(look, scene)

    def test_compare(self, take: Any, until: Any, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
        monkeypatch.setattr("hfbench.screens.compare.compared", lambda sides, stopped: ComparedMessage(compared()))

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_compare(["3f9a1c", "71c0de"])
            await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and pilot.app.screen.result)
            table = pilot.app.screen.query_one(CompareTable)
            await until(pilot, lambda: table.move_to("metric:0:1"))

        take(look, scene)
