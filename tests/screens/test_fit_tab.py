"""The Fit tab: the grid and the terms are those of the command line, keys turn what is asked, the latest wins."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from known_models import LLAMA_8B
from pages import text

from hfbench.actions.fit import Fit, FitResult
from hfbench.config import Config, ModelsConfig
from hfbench.jobs.run import Run
from hfbench.screens.model import TABS, ModelScreen
from hfbench.screens.model_tabs.fit import FitTab
from hfbench.screens.model_tabs.fit_asked import DEFAULT_GPU, DTYPES, KV_DTYPES, RUNTIMES, Asked
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.fit_grid import FitGrid
from hfbench.widgets.notice import Notice

WAIT = 120.0
"""Seconds for a child process to start on a machine that does much else."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "models" / "llama-8b"
    made.mkdir(parents=True)
    (made / "config.json").write_text(json.dumps(LLAMA_8B))
    return made


async def opened(pilot: Any, until: Any) -> FitTab:
    """The tab in front with its first answer."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen) and pilot.app.screen.view.location, WAIT)
    await pilot.press("f")
    tab: FitTab = pilot.app.screen.query_one(FitTab)
    await until(pilot, lambda: tab.result is not None and tab.at_rest, WAIT)
    await pilot.pause()  # painted too
    return tab


async def pressed(pilot: Any, until: Any, *keys: str) -> FitResult:
    """The answer after these keys."""
    tab: FitTab = pilot.app.screen.query_one(FitTab)
    await pilot.press(*keys)
    await until(pilot, lambda: tab.at_rest and tab.result is not None, WAIT)
    await pilot.pause()
    assert tab.result is not None
    return tab.result


def performed(folder: Path, **values: Any) -> FitResult:
    return Fit(model=str(folder), **{"gpu": DEFAULT_GPU, "grid": True, **values}).perform(Run())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_grid_and_the_terms_are_those_of_the_command_line(
    bench: Any, until: Any, picture: Any, folder: Path, size: tuple[int, int]
) -> None:
    wanted = performed(folder)
    async with bench(str(folder)).run_test(size=size) as pilot:
        tab = await opened(pilot, until)
        assert tab.result == wanted
        shown = [" ".join(line.replace(">", " ").split()) for line in picture(pilot)]  # the sign of the cursor aside
        grid = wanted.lines()[wanted.lines().index("GiB on a GPU by context and batch:") :][:8]
        for line in grid[1:]:
            assert " ".join(line.split()) in shown
        told = text(picture, pilot)
        for answer in (
            "gpu H100 SXM 80GB",
            "context 32,768 of 131,072, batch 1",
            "ok fits, 52.3 GiB to spare",
            "weights 15.0 GiB kv cache 4.00 GiB",
            "at most context 131,072 at batch 1",
        ):
            assert answer in told


async def test_arrows_move_the_cell_and_go_on_past_the_edge(bench: Any, until: Any, picture: Any, folder: Path) -> None:
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        result = await pressed(pilot, until, "down", "right")
        assert (result.context, result.batch) == (65536, 4)
        assert result == performed(folder, context=65536, batch=4)
        result = await pressed(pilot, until, "down", "down")
        assert result.context == 262144
        assert "256k!" in text(picture, pilot)
        assert "! context 262,144 is beyond the model's limit of 131,072 tokens" in text(picture, pilot)
        result = await pressed(pilot, until, *["right"] * 4)
        assert result.batch == 1024
        assert (result.fits, result.limiting) == (False, "kv_cache")
        assert "x does not fit: kv cache passes the memory" in text(picture, pilot)
        result = await pressed(pilot, until, *["left"] * 9, *["up"] * 20)
        assert (result.context, result.batch) == (512, 1)


async def test_every_key_turns_its_field_and_its_capital_turns_it_back(
    bench: Any, until: Any, picture: Any, folder: Path
) -> None:
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        tab = await opened(pilot, until)
        for key, name, first, second in (
            ("d", "dtype", DTYPES[0], DTYPES[1]),
            ("k", "kv_dtype", KV_DTYPES[0], KV_DTYPES[1]),
            ("t", "tp", 1, 2),
            ("p", "pp", 1, 2),
            ("r", "runtime", RUNTIMES[0], RUNTIMES[1]),
            ("g", "gpu", DEFAULT_GPU, "H100 PCIe 80GB"),
        ):
            assert getattr(tab.asked, name) == first
            result = await pressed(pilot, until, key)
            assert getattr(tab.asked, name) == second
            assert result == performed(folder, **{name: second}), name
            await pressed(pilot, until, key.upper())
            assert getattr(tab.asked, name) == first
        result = await pressed(pilot, until, "e")
        assert result.ep == 1  # no experts: there is nothing to turn
        assert not pilot.app.machine.recording  # r belongs to the tab here


async def test_ranks_that_the_model_does_not_allow_are_passed_over(bench: Any, until: Any, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**LLAMA_8B, "num_attention_heads": 9, "num_key_value_heads": 3}))
    async with bench(str(folder)).run_test() as pilot:
        await opened(pilot, until)
        assert [(await pressed(pilot, until, "t")).tp for _ in range(3)] == [3, 9, 1]
        assert not pilot.app.screen.query_one(FitTab).query_one(Notice).display


async def test_keys_are_answered_before_the_count_and_the_latest_wins(
    bench: Any, until: Any, picture: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(str(folder)).run_test() as pilot:
        tab = await opened(pilot, until)
        asked: list[Any] = []
        assert tab._aside is not None
        real = tab._aside.ask
        monkeypatch.setattr(tab._aside, "ask", lambda *each: asked.append(each[1]) or real(*each))
        os.kill(tab._aside._child.pid, signal.SIGSTOP)  # type: ignore[union-attr]
        try:
            await pilot.press("t", "k", "right", "right")
            await until(pilot, lambda: "t tp 2" in text(picture, pilot) and "kv fp8" in text(picture, pilot), WAIT)
            assert not tab.at_rest
            assert "counting ..." in text(picture, pilot)
        finally:
            os.kill(tab._aside._child.pid, signal.SIGCONT)  # type: ignore[union-attr]
        await until(pilot, lambda: tab.at_rest, WAIT)
        assert tab.result == performed(folder, tp=2, kv_dtype="fp8", context=32768, batch=16)
        assert len(asked) < 4  # those that a later key overtook were never asked


async def test_enter_tells_the_formulas_and_escape_closes_them(
    bench: Any, until: Any, picture: Any, folder: Path
) -> None:
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        tab = await opened(pilot, until)
        assert tab.result is not None
        await pilot.press("enter")
        await until(pilot, lambda: "batch x vocabulary / tp x 4 bytes" in text(picture, pilot))
        for name in tab.result.terms:
            assert name.replace("_", " ") in text(picture, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "batch x vocabulary" not in text(picture, pilot))
        assert isinstance(pilot.app.screen, ModelScreen)


async def test_y_copies_the_command_that_tells_the_same(
    bench: Any, until: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, hfbench: Callable[..., Any]
) -> None:
    copied: list[str] = []

    async def copy(app: Any, text: str) -> str:
        copied.append(text)
        return "copied"

    monkeypatch.setattr("hfbench.screens.base.copy_text", copy)
    async with bench(str(folder)).run_test() as pilot:
        tab = await opened(pilot, until)
        await pressed(pilot, until, "t", "k", "down", "right")
        await pilot.press("y")
        await until(pilot, lambda: copied)
        assert tab.result is not None
        told = json.loads(hfbench(*shlex.split(copied[0])[1:], "--json").stdout)
        assert (told["tp"], told["kv_dtype"], told["context"], told["batch"]) == (2, "fp8", 65536, 4)
        assert told["total_bytes"] == tab.result.total_bytes


async def test_the_models_screen_opens_a_model_at_this_tab(bench: Any, until: Any, folder: Path) -> None:
    config = Config(models=ModelsConfig(roots=(str(folder.parent),)))
    async with bench(config=config).run_test() as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen) and pilot.app.screen.current, WAIT)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen), WAIT)
        screen = pilot.app.screen
        assert isinstance(screen.front, FitTab)
        await until(pilot, lambda: screen.front.result is not None, WAIT)
        assert isinstance(screen.focused, FitGrid)
        assert [tab.title for tab in TABS].index("Fit") == [tab.title for tab in TABS].index("Files") + 1


async def test_without_a_configuration_there_is_no_grid_and_no_figure_for_the_cache(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model(config=None)
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        tab = await opened(pilot, until)
        assert tab.result is not None
        assert tab.result.grid == ()
        shown = text(picture, pilot)
        assert "! no configuration, so no figure for the KV cache" in shown
        assert "KV cache not known" in shown
        assert "~ what is known fits, but not everything is known" in shown
        await pilot.press("down", "enter", "t")
        await until(pilot, lambda: tab.at_rest, WAIT)


async def test_a_model_without_weights_says_how_they_were_counted(
    bench: Any, until: Any, picture: Any, folder: Path
) -> None:
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        await opened(pilot, until)
        shown = text(picture, pilot)
        assert "15.0 GiB, by architecture, 8.03B parameters (8,030,261,248)" in shown
        assert "~ weights are counted from the architecture, not from headers" in shown


async def test_a_child_that_dies_is_told_and_the_next_key_starts_another(
    bench: Any, until: Any, picture: Any, folder: Path
) -> None:
    async with bench(str(folder)).run_test() as pilot:
        tab = await opened(pilot, until)
        assert tab._aside is not None
        assert tab._aside._child is not None
        os.kill(tab._aside._child.pid, signal.SIGKILL)
        await pilot.press("t")
        await until(pilot, lambda: "the process that performs fit was ended by SIGKILL" in text(picture, pilot), WAIT)
        result = await pressed(pilot, until, "t")
        assert result.tp == 4
        await until(pilot, lambda: "SIGKILL" not in text(picture, pilot))


async def test_the_child_ends_with_the_screen(bench: Any, until: Any, folder: Path) -> None:
    async with bench(str(folder)).run_test() as pilot:
        tab = await opened(pilot, until)
        assert tab._aside is not None
        child = tab._aside._child
        assert child is not None
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        await until(pilot, lambda: child.poll() is not None, WAIT)


@pytest.mark.parametrize("keys", [("left",), ("up",), ("right",), ("down",)], ids=str)
def test_a_cell_never_leaves_what_may_be_asked(keys: tuple[str], folder: Path) -> None:
    steps = {"left": (0, -1), "up": (-1, 0), "right": (0, 1), "down": (1, 0)}[keys[0]]
    result, asked = performed(folder), Asked()
    for _ in range(60):
        asked = asked.moved(*steps, result)
        assert 512 <= (asked.context or 512) <= 2**30
        assert 1 <= asked.batch <= 2**20


def test_turning_the_tensor_ranks_lets_go_of_expert_ranks_that_no_longer_divide(folder: Path) -> None:
    result = performed(folder)
    assert Asked(tp=1, ep=2).turned("tp", 2, result, ()) == Asked(tp=4, ep=1)
    assert Asked(tp=1, ep=8).turned("tp", 2, result, ()) == Asked(tp=4, ep=8)
