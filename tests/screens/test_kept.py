"""Where a workbench was left: the file, and going back there."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hfbench.screens.attached import PlaceKeeper, stops_of
from hfbench.screens.kept import DEEPEST, MOST, Left, PlaceFile, Stop
from hfbench.screens.model import ModelScreen
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.form_state import FormState

GONE = 2**22 + 7
"""No process has it: it is above the largest number Linux gives."""


def left_behind(folder: Path, *stops: Stop, at: float = 1.0, pid: int = GONE) -> Path:
    """The file of a workbench that was killed."""
    file = PlaceFile(folder)
    file.pid = pid
    file.path = folder / f"{file.host}-{pid}-{at}.json"
    file.write(stops)
    told = json.loads(file.path.read_text())
    file.path.write_text(json.dumps(told | {"at": at}))
    return file.path


def test_the_one_that_ended_last_is_taken_over_and_then_the_one_before(tmp_path: Path) -> None:
    left_behind(tmp_path, Stop("jobs"), at=1)
    left_behind(tmp_path, Stop("gpus"), at=2, pid=GONE + 1)
    assert PlaceFile(tmp_path).take_over() == Left((Stop("gpus"),))
    other = PlaceFile(tmp_path)
    other.path = tmp_path / "another.json"
    assert other.take_over().stops[0].screen == "gpus", "the first runs still and is not preferred to"


def test_one_that_ended_goes_before_one_that_runs(tmp_path: Path) -> None:
    left_behind(tmp_path, Stop("jobs"), at=1)
    left_behind(tmp_path, Stop("gpus"), at=2, pid=os.getpid())
    mine = PlaceFile(tmp_path)
    assert mine.take_over() == Left((Stop("jobs"),))
    assert mine.path.exists()


def test_with_all_running_the_newest_is_copied_and_keeps_its_file(tmp_path: Path) -> None:
    path = left_behind(tmp_path, Stop("gpus"), pid=os.getpid())
    assert PlaceFile(tmp_path).take_over() == Left((Stop("gpus"),))
    assert path.exists()


ENDLESS_PID = b'{"v": 1, "at": 1, "host": "lab", "pid": 1e400, "ticks": 1, "stops": []}'
ENDLESS_TIME = ENDLESS_PID.replace(b"1e400", b"1").replace(b'"at": 1', b'"at": 1' + b"0" * 400)
DAMAGE = [
    *(b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"v": 1}', b'{"v": 1, "at": "x"}', b"[" * 9999),
    *(ENDLESS_PID, ENDLESS_TIME),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_is_told_and_passed_over(tmp_path: Path, damage: bytes) -> None:
    left_behind(tmp_path, Stop("jobs"))
    (tmp_path / "lab-1-1.json").write_bytes(damage)
    told = PlaceFile(tmp_path).take_over()
    assert told.stops == (Stop("jobs"),)
    assert len(told.troubles) == 1
    assert "lab-1-1.json: is damaged" in told.troubles[0]


def test_a_file_of_hundreds_of_screens_opens_only_the_first_of_them(tmp_path: Path) -> None:
    path = left_behind(tmp_path, *(Stop("jobs", filter=str(number)) for number in range(800)))
    told = json.loads(path.read_text())
    assert len(told["stops"]) == DEEPEST
    path.write_text(json.dumps(told | {"stops": told["stops"] * 25}))
    assert PlaceFile(tmp_path).take_over().stops == tuple(Stop("jobs", filter=str(n)) for n in range(DEEPEST))


def test_a_file_of_a_newer_version_is_told_passed_over_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "lab-1-1.json"
    path.write_text(json.dumps({"v": 99, "hfbench": "9.0"}))
    told = PlaceFile(tmp_path).take_over()
    assert told.stops == ()
    assert "newer hfbench (9.0)" in told.troubles[0]
    assert path.exists()


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not PlaceFile(tmp_path / "file" / "state").write([Stop("jobs")])
    assert PlaceFile(tmp_path / "file" / "state").take_over() == Left()


def test_a_kill_in_the_middle_of_a_write_leaves_the_place_before(tmp_path: Path) -> None:
    file = PlaceFile(tmp_path)
    file.write([Stop("jobs")])
    file.path.with_suffix(".new").write_text('{"v": 1, "st')
    assert [each.name for each in tmp_path.glob("*.json")] == [file.path.name]
    assert json.loads(file.path.read_text())["stops"][0]["screen"] == "jobs"


def test_only_some_files_of_the_dead_are_kept(tmp_path: Path) -> None:
    for number in range(MOST + 5):
        left_behind(tmp_path, Stop("jobs"), at=float(number), pid=GONE + number)
    mine = PlaceFile(tmp_path)
    mine.write([Stop("gpus")])
    mine.sweep()
    assert len(list(tmp_path.glob("*.json"))) == MOST + 1
    assert not (tmp_path / f"{mine.host}-{GONE}-0.0.json").exists()


def attached(bench: Any, tmp_path: Path, *stops: Stop, troubles: tuple[str, ...] = ()) -> Any:
    app = bench()
    app.place_file, app.left = PlaceFile(tmp_path / "state"), Left(stops, troubles)
    return app


async def test_a_model_comes_back_with_its_tab_and_its_filter(
    bench: Any, until: Any, picture: Any, make_model: Any, tmp_path: Path
) -> None:
    model = str(make_model())
    first = bench()
    async with first.run_test(size=(80, 24), notifications=True) as pilot:
        first.open_model(model, "TensorsTab")
        await until(pilot, lambda: first.screen.is_mounted and not first.screen.view.reading)
        await pilot.press("slash", *"down", "enter")
        await until(pilot, lambda: "embed_tokens" not in "\n".join(picture(pilot)))
        stops = stops_of(first)
    assert stops[-1] == Stop("ModelScreen", {"model": model, "tab": "TensorsTab"}, "down")
    second = attached(bench, tmp_path, *stops)
    async with second.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(second.screen, ModelScreen) and not second.screen.view.reading)
        await until(pilot, lambda: "filter: down" in "\n".join(picture(pilot)))
        shown = "\n".join(picture(pilot))
        assert "down_proj" in shown
        assert "embed_tokens" not in shown
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(second.screen, ModelsScreen))


async def test_screens_come_back_on_each_other(bench: Any, until: Any, tmp_path: Path) -> None:
    app = attached(bench, tmp_path, Stop("models", {"source": "recent"}), Stop("jobs", {}, "bench"))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: type(app.screen).__name__ == "JobsScreen")
        await until(pilot, lambda: app.screen.filter_bar.text == "bench")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert app.screen.source == "recent"


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (Stop("ModelScreen", {"model": "/nowhere/at-all"}), "the model is gone"),
        (Stop("JobScreen", {"job": "2026-01-05T08-00-00-bench.generate-abc123"}), "the job is gone"),
        (Stop("JobScreen", {"job": "../.."}), "the job is gone"),
        (Stop("JobScreen", {}), "lacks its job"),
        (Stop("HologramScreen"), "this hfbench does not have: HologramScreen"),
    ],
)
async def test_what_is_gone_is_told_on_the_screen_below(
    bench: Any, until: Any, toasts: Any, tmp_path: Path, stop: Stop, told: str
) -> None:
    app = attached(bench, tmp_path, Stop("models"), Stop("jobs"), stop)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: told in " ".join(toasts(pilot).split()), 10)
        assert type(app.screen).__name__ == "JobsScreen"


async def test_the_first_time_says_that_there_is_no_place(bench: Any, until: Any, toasts: Any, tmp_path: Path) -> None:
    app = attached(bench, tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "no place was kept yet" in " ".join(toasts(pilot).split()), 10)


async def test_the_place_is_written_once_for_each_change_and_not_for_each_key(
    bench: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    file = PlaceFile(tmp_path)
    monkeypatch.setattr(file, "write", lambda stops: written.append(stops))
    app = bench()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.screen.is_mounted)
        keeper = PlaceKeeper(app, file)
        for _ in range(3):
            await pilot.press("down", "up")
            keeper.look_last()
        await pilot.press("2")
        keeper.look_last()
        keeper.look_last()
    assert [[stop.screen for stop in stops] for stops in written] == [["models"], ["models", "jobs"]]


async def test_a_slow_disk_holds_up_neither_keys_nor_the_end(
    bench: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PlaceFile(tmp_path)
    monkeypatch.setattr(file, "write", lambda stops: time.sleep(30))
    app = bench()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.screen.is_mounted)
        keeper = PlaceKeeper(app, file)
        began = time.monotonic()
        keeper.look()
        assert time.monotonic() - began < 0.3
        keeper.look_last()
        assert time.monotonic() - began < 5


async def test_a_form_comes_back_as_far_as_it_was_filled_in_but_never_a_secret(
    bench: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench()
    async with first.run_test(size=(80, 24), notifications=True) as pilot:
        first.open_form("bench.generate")
        await until(pilot, lambda: first.screen.is_mounted and first.screen.focused)
        first.screen.type_again({"batch": "1,4,", "model": "/models/half"})
        await until(pilot, lambda: first.screen.state.texts["batch"] == "1,4,")
        stops = stops_of(first)
        assert "typed.prompt_text" in stops[-1].about
        params = [replace(each, secret=each.name == "prompt_text") for each in first.screen.state.params]
        with monkeypatch.context() as patched:
            patched.setattr(FormState, "params", params)
            assert "typed.prompt_text" not in stops_of(first)[-1].about
            assert "typed.batch" in stops_of(first)[-1].about
    second = attached(bench, tmp_path, *stops)
    async with second.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: type(second.screen).__name__ == "LaunchScreen" and second.screen.is_mounted)
        await until(pilot, lambda: second.screen.state.texts["batch"] == "1,4,")
        assert second.screen.state.texts["model"] == "/models/half"
