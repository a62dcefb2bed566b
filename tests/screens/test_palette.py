"""The palette offers what a query names and nothing else, and says so where that is nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_folders import generate_metrics, make_sweep
from textual.command import CommandPalette

from hfbench.actions.registry import actions
from hfbench.screens.palette_match import places, score
from hfbench.screens.sweep import SweepScreen
from hfbench.widgets.heat_grid import HeatGrid


@pytest.mark.parametrize("query", ["nosuch", "zzz", "best of all", "?"])
def test_what_nothing_is_called_finds_nothing(query: str) -> None:
    assert [spec.name for spec in actions().values() if score(query, spec.name, spec.summary)] == []


@pytest.mark.parametrize(
    ("query", "first"),
    [("best", "best cell"), ("bg", "bench.generate"), ("generate", "bench.generate"), ("bench gen", "bench.generate")],
)
def test_the_nearest_name_comes_first(query: str, first: str) -> None:
    entries = [("best cell", "Go to the best cell of this sweep")]
    entries += [(spec.name, spec.summary) for spec in actions().values()]
    assert max(entries, key=lambda entry: score(query, *entry))[0] == first


def test_a_name_comes_before_the_same_word_in_what_another_does_and_letters_of_a_summary_count_for_nothing() -> None:
    assert score("sweep", "go to sweeps", "Show the sweeps screen") > score("sweep", "x", "A sweep of it") > 0
    assert score("aso", "x", "A sweep of it") == 0


@given(st.text(max_size=12), st.text(max_size=24), st.text(max_size=40))
def test_every_place_that_is_marked_holds_a_letter_of_the_query(query: str, name: str, summary: str) -> None:
    assert 0 <= score(query, name, summary) <= 1
    assert all(0 <= at < len(name.casefold()) for at in places(query, name))


async def test_a_query_that_names_nothing_is_told_and_enter_opens_nothing(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        await pilot.press(*"nosuch")
        await until(pilot, lambda: "No matches found" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, CommandPalette)


async def test_b_and_the_palette_go_to_the_best_cell_in_every_view_whatever_axes_are_fixed(
    bench: Any, until: Any, home: Path
) -> None:
    axes = {"dtype": ["fp32", "bf16"], "batch": [1, 4], "mode": ["eager", "compile"]}
    sweep = make_sweep(home / "sweeps", "made", axes, at=time.time() - 60)
    for number, values in enumerate(sweep.cells, 1):
        sweep.result(number, generate_metrics(0.01 / (number % 8 + 1), values["batch"]))
        sweep.ended(number, "finished", at=number)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_sweep("made")
        await until(pilot, lambda: isinstance(pilot.app.screen, SweepScreen) and pilot.app.screen.sight)
        screen = pilot.app.screen
        best = screen.sight.best.number
        await until(pilot, lambda: screen.cell is not None)
        assert (best, screen.cell.number, dict(screen.sight.look.fixed)) == (7, 1, {"mode": "eager"})
        await pilot.press("f")
        await until(pilot, lambda: dict(screen.sight.look.fixed) == {"mode": "compile"})
        await pilot.press("b")
        await until(pilot, lambda: screen.query_one(HeatGrid).current == screen.cell.number == best)
        for _ in ("cells", "front"):
            await pilot.press("v", "home", "b")
            await until(pilot, lambda: screen.cell.number == best)
        await pilot.press("v", "home")
        await until(pilot, lambda: screen.cell.number != best)
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        await pilot.press(*"best")
        await pilot.pause(0.6)
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is screen and screen.cell.number == best)
