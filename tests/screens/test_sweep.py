"""Sweeps from the form to the figures: a real conductor runs toy cells, and the screens follow it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from sweep_folders import MadeSweep, generate_metrics, make_sweep

from hfbench.jobs.directory import job_ids
from hfbench.paths import config_file, jobs_root, sweeps_root
from hfbench.screens.attached import go_back, stops_of
from hfbench.screens.job import JobScreen
from hfbench.screens.kept import Left
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.pick import Pick
from hfbench.screens.sweep import SweepScreen
from hfbench.screens.sweep_form import form_of
from hfbench.screens.sweeps import SweepsScreen, SweepTable
from hfbench.sweeps.snapshot import read_sweep
from hfbench.widgets.form import FieldInput
from hfbench.widgets.heat_grid import HeatGrid
from hfbench.widgets.sweep_panes import CellTable, FrontTable


async def open_form(pilot: Any, until: Any, action: str, **texts: str) -> None:
    """The form of an action with these fields typed over."""
    pilot.app.open_form(action)
    await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
    for name, text in texts.items():
        pilot.app.screen.query_one(f"#field-{name}", FieldInput).value = text
        await until(pilot, lambda name=name, text=text: pilot.app.screen.state.texts[name] == text)


async def on_page(pilot: Any, until: Any) -> SweepScreen:
    """The page of a sweep, once it was read."""
    await until(pilot, lambda: isinstance(pilot.app.screen, SweepScreen) and pilot.app.screen.sight)
    screen: SweepScreen = pilot.app.screen
    return screen


@pytest.mark.usefixtures("toy_actions")
async def test_a_range_in_a_form_runs_as_a_sweep_whose_cells_are_seen_and_opened(
    bench: Any, until: Any, picture: Any
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await open_form(pilot, until, "toy.count", to="1..4*2")
        await until(pilot, lambda: "of 3 cells" in "\n".join(picture(pilot)))
        assert "hfbench sweep run toy count --vary 'to=1..4*2'" in " ".join(" ".join(picture(pilot)).split())
        await pilot.press("enter")
        screen = await on_page(pilot, until)
        await until(pilot, lambda: screen.snapshot.state == "finished")
        assert screen.snapshot.counts()["finished"] == 3
        assert "3 finished" in picture(pilot)[1]
        screen.query_one(HeatGrid).move_to(2)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.snapshot)
        assert pilot.app.screen.snapshot.params["to"] == 2
        await pilot.press("escape", "9")
        await until(pilot, lambda: isinstance(pilot.app.screen, SweepsScreen) and pilot.app.screen.rows)
        assert any("count-to" in line and "ok finished" in line and "3 of 3" in line for line in picture(pilot))
    assert len(job_ids(jobs_root())) == 3
    assert [cell.values for cell in read_sweep(sweeps_root() / "count-to").cells] == [{"to": 1}, {"to": 2}, {"to": 4}]


@pytest.mark.usefixtures("toy_actions")
async def test_a_cancelled_sweep_is_resumed_from_its_page_without_redoing_what_finished(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await open_form(pilot, until, "toy.count", to="1,400", pause="0.1")
        await pilot.press("enter")
        screen = await on_page(pilot, until)
        await until(pilot, lambda: [cell.state for cell in screen.snapshot.cells] == ["finished", "running"])
        await pilot.press("c", "y")
        await until(pilot, lambda: screen.snapshot.state == "stopped")
        first = screen.snapshot.cells[0]
        await pilot.press("s")
        await until(pilot, lambda: screen.snapshot.state == "running" and screen.snapshot.cells[1].state == "running")
        assert screen.snapshot.cells[0] == first
        await pilot.press("c", "y")
        await until(pilot, lambda: screen.snapshot.state == "stopped")
        assert screen.snapshot.cells[0] == first


@pytest.mark.usefixtures("toy_actions")
async def test_failed_cells_alone_are_run_again_once_that_was_confirmed(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await open_form(pilot, until, "toy.fail", how="error,exit")
        await pilot.press("enter")
        screen = await on_page(pilot, until)
        await until(pilot, lambda: screen.snapshot.state == "finished")
        assert screen.snapshot.counts()["failed"] == 2
        await until(pilot, lambda: "the toy is broken" in "\n".join(picture(pilot)))
        await pilot.press("R", "n")
        await pilot.press("R", "y")
        await until(pilot, lambda: {cell.attempt for cell in screen.snapshot.cells} == {2})
        await until(pilot, lambda: screen.snapshot.state == "finished")


@pytest.mark.usefixtures("toy_actions")
async def test_where_no_cell_failed_r_runs_the_cell_under_the_cursor_or_those_that_are_marked_again(
    bench: Any, until: Any, picture: Any, toasts: Any
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await open_form(pilot, until, "toy.count", to="1,2,3")
        await pilot.press("enter")
        screen = await on_page(pilot, until)
        await until(pilot, lambda: screen.snapshot.state == "finished")
        first = screen.snapshot.cells
        screen.query_one(HeatGrid).move_to(2)
        await pilot.press("R")
        assert "run cell 2, which is finished, of count-to again?" in " ".join(picture(pilot))
        await pilot.press("y")
        await until(pilot, lambda: screen.snapshot.state == "finished" and screen.snapshot.cells[1].attempt == 2)
        assert [cell.attempt for cell in screen.snapshot.cells] == [1, 2, 1]
        assert (jobs_root() / first[1].jobs[-1]).is_dir(), "the earlier job stays"
        screen.query_one(HeatGrid).move_to(1)
        await pilot.press("space")
        screen.query_one(HeatGrid).move_to(3)
        await pilot.press("space", "R")
        assert "run 2 marked cells of count-to again?" in " ".join(picture(pilot))
        await pilot.press("n", "escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, SweepScreen))
        await pilot.press("9")
        await until(pilot, lambda: isinstance(pilot.app.screen, SweepsScreen) and pilot.app.screen.row)
        await pilot.press("R")
        assert "no cell of count-to failed: enter opens it, and R there runs" in toasts(pilot)


async def test_r_says_why_nothing_is_run_again_while_the_sweep_runs(
    bench: Any, until: Any, toasts: Any, picture: Any, home: Path
) -> None:
    sweep = make_sweep(home / "sweeps", "made", {"batch": [1, 2]}, at=time.time())
    sweep.step(1, "2026-12-01T00-00-00-bench.generate-000001", at=1)
    sweep.hold()
    try:
        async with bench().run_test(size=(80, 24), notifications=True) as pilot:
            pilot.app.open_sweep("made")
            await on_page(pilot, until)
            assert "R rerun" not in picture(pilot)[-1]
            assert "c cancel" in picture(pilot)[-1]
            await pilot.press("R")
            assert "made is running: R runs cells again once it is over, or cancelled by c" in toasts(pilot)
    finally:
        sweep.let_go()


async def test_the_keys_of_a_sweep_that_is_over_fit_80_columns_in_every_view(
    bench: Any, until: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        await on_page(pilot, until)
        for _ in range(3):
            line = picture(pilot)[-1]
            assert "w report" in line
            assert "? help" in line or "? more" in line
            await pilot.press("v")


# -- looking ------------------------------------------------------------------


@pytest.fixture
def made(home: Path) -> MadeSweep:
    """A sweep of twelve cells; nine measured, one failed, one skipped, one queued."""
    axes = {"dtype": ["fp32", "bf16"], "batch": [1, 4, 16], "mode": ["eager", "compile"]}
    sweep = make_sweep(home / "sweeps", "made", axes, at=time.time() - 60)
    for number, values in enumerate(sweep.cells[:-1], 1):
        sweep.step(number, f"2026-12-01T00-00-00-bench.generate-{number:06x}", at=number)
        if number == 5:
            sweep.ended(number, "failed", reason="out of memory", at=number + 1)
        elif number == 6:
            sweep.ended(number, "skipped", reason="no compiler here", at=number + 1)
        else:
            sweep.result(number, generate_metrics(0.01 / number, values["batch"]))
            sweep.ended(number, "finished", at=number + 1)
    return sweep


async def test_the_map_shows_any_metric_over_any_two_axes_with_the_others_fixed(
    bench: Any, until: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        assert "m metric state   a across batch   d down dtype" in "\n".join(picture(pilot))
        assert "x failed" in "\n".join(picture(pilot))
        await pilot.press("m")
        assert isinstance(pilot.app.screen, Pick)
        await pilot.press(*"tpot.p50", "enter")
        await until(pilot, lambda: screen.sight.look.metric == "tpot.p50")
        assert "tpot.p50 in ms, lower is better" in "\n".join(picture(pilot))
        await pilot.press("f")
        await until(pilot, lambda: dict(screen.sight.look.fixed) == {"mode": "compile"})
        assert "f with mode=compile (2 of 2)" in "\n".join(picture(pilot))
        await pilot.press("a")
        await until(pilot, lambda: screen.sight.look.x == "mode")
        assert "dtype \\ mode" in "\n".join(picture(pilot))
        await pilot.press("d")
        await until(pilot, lambda: (screen.sight.look.x, screen.sight.look.y) == ("mode", "batch"))


async def test_the_cursor_keeps_its_cell_through_all_views(
    bench: Any, until: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        screen.query_one(HeatGrid).move_to(9)
        await until(pilot, lambda: screen.cell and screen.cell.number == 9)
        await pilot.press("v")
        await until(pilot, lambda: screen.query_one(CellTable).current == "9")
        assert "cell 9" in "\n".join(picture(pilot))
        await pilot.press("v")
        await until(pilot, lambda: screen.query_one(FrontTable).has_focus)
        assert screen.sight.front is not None
        assert screen.cell is not None
        assert screen.cell.number in {point.number for point in screen.sight.front.best}
        await pilot.press("v")
        await until(pilot, lambda: screen.query_one(HeatGrid).has_focus)


async def test_axes_turned_in_quick_succession_are_all_turned(bench: Any, until: Any, made: MadeSweep) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        assert (screen.sight.look.x, screen.sight.look.y) == ("batch", "dtype")
        await pilot.press("a", "a", "a")
        await until(pilot, lambda: screen.takes_keys)
        assert (screen.sight.look.x, screen.sight.look.y) == ("batch", "mode")


SCRIPT = """
hfbench: 1
name: again
matrix: {dtype: [fp32, bf16], width: [16, 32, 64, 128], seed: [1, 2, 3, 4, 5], batch: [1, 2]}
steps:
- bench.generate:
    {model: ./tiny, in: mine, dtype: "{{ dtype }}", prompt: "{{ width }}", seed: "{{ seed }}", batch: "{{ batch }}",
    ci: 0.05}
"""


async def test_a_sweep_is_edited_in_a_form_filled_as_it_was_with_its_ranges(
    bench: Any, until: Any, made: MadeSweep
) -> None:
    made.folder.script.write_text(SCRIPT.replace("in: mine, ", ""))
    about = json.loads((made.folder.path / "sweep.json").read_text())
    (made.folder.path / "sweep.json").write_text(json.dumps({**about, "on": ["local", "ssh:box2"]}))
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_sweep("made")
        await on_page(pilot, until)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        state = pilot.app.screen.state
        texts = {"model": "./tiny", "dtype": "fp32,bf16", "prompt": "16..128*2", "seed": "1..5", "batch": "1,2"}
        assert state.texts.items() >= {**texts, "ci": "0.05", "on": "local,ssh:box2"}.items()
        assert (state.cells, state.problems) == (80, {})


def test_the_environment_of_a_sweep_is_that_of_its_form(made: MadeSweep) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('[environments.mine]\npython = "/usr/bin/python3"\n')
    made.folder.script.write_text(SCRIPT)
    assert form_of(made.folder.path).runs_in == "mine"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("steps:\n- inspect: {model: ./a}\n- inspect: {model: ./b}\n", "its cells are not one step of one action"),
        (
            "matrix: {a: [1, 2], b: [1, 2], exclude: [{a: 1, b: 2}]}\nsteps:\n"
            '- bench.generate: {model: ./a, batch: "{{ a }}", prompt: "{{ b }}"}\n',
            "its cells are not all combinations of what varies",
        ),
    ],
)
async def test_a_sweep_that_no_form_stands_for_says_which_file_to_edit(
    bench: Any, until: Any, toasts: Any, made: MadeSweep, lines: str, why: str
) -> None:
    made.folder.script.write_text(f"hfbench: 1\nname: made\n{lines}")
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        await on_page(pilot, until)
        await pilot.press("e")
        await until(pilot, lambda: why in toasts(pilot) and "Copy and edit" in toasts(pilot))


async def test_a_list_in_which_nothing_matches_says_which_key_clears_and_which_closes(
    bench: Any, until: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        await pilot.press("m", *"nosuch")
        await until(pilot, lambda: "ctrl+u clears it, escape closes" in "\n".join(picture(pilot)))
        await pilot.press("ctrl+u")
        await until(pilot, lambda: "tpot.p50" in "\n".join(picture(pilot)))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


async def test_a_report_begins_with_its_form_filled_in(bench: Any, until: Any, made: MadeSweep) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_sweep("made")
        await on_page(pilot, until)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert (pilot.app.screen.spec.name, pilot.app.screen.state.values["subject"]) == ("report", "made")


async def test_whoever_attaches_again_is_back_on_the_page_of_the_sweep(
    bench: Any, until: Any, toasts: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("9")
        await until(pilot, lambda: isinstance(pilot.app.screen, SweepsScreen) and pilot.app.screen.rows)
        await pilot.press("enter")
        await on_page(pilot, until)
        stops = stops_of(pilot.app)
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await go_back(pilot.app, Left(stops=stops))
        assert (await on_page(pilot, until)).folder.name == "made"
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SweepsScreen)
    shutil.rmtree(made.folder.path)
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await go_back(pilot.app, Left(stops=stops))
        await until(pilot, lambda: "the sweep is gone: made" in " ".join(toasts(pilot).split()))


async def test_a_filter_and_marks_work_in_the_table_and_two_marks_are_needed_to_compare(
    bench: Any, until: Any, picture: Any, toasts: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        await pilot.press("space", "equals_sign")
        await until(pilot, lambda: "mark two cells or more" in toasts(pilot))
        await pilot.press("v", "slash", *"bf16", "enter")
        await until(pilot, lambda: screen.query_one(CellTable).shown == 6)
        await pilot.press("end", "space", "equals_sign")
        await until(pilot, lambda: "cell 12 has no job yet" in toasts(pilot))
        assert screen.marked == [1, 12]


async def test_a_cell_whose_job_was_deleted_says_so_and_keeps_its_figures(
    bench: Any, until: Any, toasts: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        await on_page(pilot, until)
        await pilot.press("enter")
        await until(pilot, lambda: "was deleted; its figures stay in the sweep" in toasts(pilot))
        assert "tpot.p50" in "\n".join(picture(pilot))


async def test_a_sweep_whose_conductor_is_gone_says_how_to_go_on(
    bench: Any, until: Any, picture: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("made")
        screen = await on_page(pilot, until)
        assert screen.snapshot.state == "interrupted"
        text = " ".join(" ".join(picture(pilot)).split())
        assert "hfbench sweep resume made goes on without redoing finished cells" in text
        assert "s resume" in picture(pilot)[-1]


async def test_a_sweep_that_is_gone_or_written_by_a_newer_version_is_told(
    bench: Any, until: Any, picture: Any, home: Path
) -> None:
    make_sweep(home / "sweeps", "newer", {"batch": [1, 2]}, at=time.time(), version=99)
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_sweep("nowhere")
        await until(pilot, lambda: "the sweep is gone" in " ".join(" ".join(picture(pilot)).split()))
        await pilot.press("escape")
        pilot.app.open_sweep("newer")
        await on_page(pilot, until)
        assert "newer than this one" in " ".join(" ".join(picture(pilot)).split())


async def test_an_empty_list_says_what_to_press(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("9")
        await until(pilot, lambda: "a list such as 1,8,32 in a field" in "\n".join(picture(pilot)))
        assert picture(pilot)[-1].split() == ["enter", "open", "/", "filter", "?", "help", "q", "quit"]


async def test_the_list_marks_sweeps_and_deletes_one_only_when_asked_twice(
    bench: Any, until: Any, toasts: Any, made: MadeSweep
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("9")
        await until(pilot, lambda: isinstance(pilot.app.screen, SweepsScreen) and pilot.app.screen.rows)
        await pilot.press("space", "equals_sign")
        await until(pilot, lambda: "mark two sweeps or more" in toasts(pilot))
        assert pilot.app.screen.marked == ["made"]
        await pilot.press("D", "n")
        assert made.folder.path.is_dir()
        await pilot.press("D", "y")
        await until(pilot, lambda: not pilot.app.screen.rows)
        assert not made.folder.path.exists()
        assert pilot.app.screen.query_one(SweepTable).current is None
