"""The overview's verdicts and findings: told once, explained on enter, and never in the way of the keys."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pages import judged, text
from small_model import TENSORS, make

from hfbench.actions import aside
from hfbench.actions.aside import Aside
from hfbench.actions.check import Check
from hfbench.jobs.run import Run
from hfbench.paths import cache_root
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.explanation import Explanation
from hfbench.screens.model_tabs.finding_lines import finding_lines
from hfbench.screens.model_tabs.findings import Findings
from hfbench.screens.model_tabs.overview import Overview
from hfbench.widgets.glyphs import ASCII

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A whole small model with nothing wrong about it."""
    (tmp_path / "models").mkdir()
    return make(tmp_path / "models" / "sound")


@pytest.fixture
def broken(sound: Path) -> Path:
    """The same in two files, the second of which is missing."""
    from small_model import weights

    (sound / "model.safetensors").unlink()
    names = list(TENSORS)
    (sound / SHARDS[0]).write_bytes(weights({name: TENSORS[name] for name in names[:6]}))
    weight_map = {name: SHARDS[number >= 6] for number, name in enumerate(names)}
    index = {"metadata": {"total_size": 1712}, "weight_map": weight_map}
    (sound / "model.safetensors.index.json").write_text(json.dumps(index))
    return sound


@pytest.fixture
def stopped_child(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The child that judges is stopped as soon as it is there, as by a disk that hangs; its process ids."""
    children: list[int] = []
    start = aside.start_beside

    def start_and_stop(module: str) -> Any:
        child = start(module)
        os.kill(child.pid, signal.SIGSTOP)
        children.append(child.pid)
        return child

    monkeypatch.setattr(aside, "start_beside", start_and_stop)
    return children


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_sound_model_loads_everywhere_and_nothing_wrong_was_found(
    bench: Any, until: Any, picture: Any, sound: Path
) -> None:
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "nothing wrong was found" in text(picture, pilot))
        shown = "\n".join(picture(pilot))
        for title in ("transformers", "vLLM", "TensorRT-LLM", "Megatron-core"):
            assert re.search(rf"ok {title} \S.*LlamaForCausalLM", shown)
        assert "Findings (" not in shown


async def test_a_missing_shard_is_on_the_screen_with_its_tensors_and_bytes_and_is_explained(
    bench: Any, until: Any, picture: Any, broken: Path
) -> None:
    async with bench(str(broken)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "Findings (1 error" in text(picture, pilot))
        shown = text(picture, pilot)
        assert f"> x HB142 {SHARDS[1]}: missing; model.safetensors.index.json puts 6 tensors into it" in shown
        assert "(1 of 2 files missing;" in shown
        assert "bytes are missing in all). Fetch the file again." in shown
        assert "vLLM 0.33.0" not in shown or f"'{SHARDS[1]}' is not there" in shown
        await pilot.press("enter")
        await until(pilot, lambda: "HB142 missing-shard" in text(picture, pilot))
        page = text(picture, pilot)
        for part in ("severity x error", f"in {SHARDS[1]}", "evidence tensors: 6", "names: model.layers.0.mlp.up_proj"):
            assert part in page
        assert "the rule A file of the weights is missing." in page
        assert isinstance(pilot.app.screen.focused, Explanation)
        await pilot.press("escape")
        await until(pilot, lambda: "Findings (1 error" in text(picture, pilot))
        assert isinstance(pilot.app.screen.focused, Findings)
        assert isinstance(pilot.app.screen, ModelScreen)


async def test_what_reading_found_is_not_told_again_by_the_check(bench: Any, until: Any, broken: Path) -> None:
    async with bench(str(broken)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        view = pilot.app.screen.view
        assert view.problems
        assert view.findings == Check(model=str(broken)).perform(Run()).findings


async def test_verdicts_are_chosen_and_explained_like_findings(
    bench: Any, until: Any, picture: Any, broken: Path
) -> None:
    board = cache_root() / "clipboard.txt"
    async with bench(str(broken)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await pilot.press("y")
        await until(pilot, lambda: board.exists() and board.read_text().startswith(f"HB142 {SHARDS[1]}: missing"))
        await pilot.press("up", "up", "up", "enter")
        await until(pilot, lambda: "verdict x does not load" in text(picture, pilot))
        page = text(picture, pilot)
        assert page.count("vLLM") == 1
        assert f"files {SHARDS[0]} {SHARDS[1]}" in page
        assert "passed over none" in page
        assert "remote code none would run" in page
        await pilot.press("enter", "up", "up", "up", "y")
        await until(pilot, lambda: board.read_text() == str(broken))


async def test_where_there_is_room_an_explanation_stands_beside_its_list_and_follows_the_cursor(
    bench: Any, until: Any, picture: Any, broken: Path
) -> None:
    async with bench(str(broken)).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await pilot.press("enter")
        await until(pilot, lambda: "HB142 missing-shard" in text(picture, pilot))
        assert "Findings (1 error" in text(picture, pilot)
        await pilot.press("up")
        await until(pilot, lambda: "verdict x does not load" in text(picture, pilot))
        assert isinstance(pilot.app.screen.focused, Findings)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, Explanation))
        assert "Findings (1 error" not in text(picture, pilot)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "Findings (1 error" in text(picture, pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, Findings))
        assert not pilot.app.screen.query_one(Overview).explains


async def test_many_findings_of_one_kind_are_counted_and_listed_on_enter(
    bench: Any, until: Any, picture: Any, sound: Path
) -> None:
    (sound / "model.safetensors").unlink()
    weight_map = {f"t{number}": f"model-{number:05d}.safetensors" for number in range(40)}
    (sound / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        screen = pilot.app.screen
        await pilot.press("down", "down", "down", "down")
        await until(pilot, lambda: "and 36 more of HB142" in text(picture, pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "36 more of HB142 missing-shard" in text(picture, pilot))
        await pilot.press("end")
        await until(pilot, lambda: "model-00039.safetensors: missing" in text(picture, pilot))
        assert len(screen.query_one(Findings).others) == 36


async def test_a_check_that_hangs_is_said_to_be_under_way_and_ends_with_the_screen(
    bench: Any, until: Any, picture: Any, broken: Path, stopped_child: list[int]
) -> None:
    async with bench(str(broken)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: stopped_child and not pilot.app.screen.view.reading, 60)
        await until(pilot, lambda: "Findings (1 error) · checking" in text(picture, pilot))
        shown = text(picture, pilot)
        assert "Runtimes · resolving" in shown
        assert f"x {SHARDS[1]}: missing" in shown
        for key in ("enter", "escape", "down", "up", "right", "left", "left", "enter", "down", "right"):
            await pilot.press(key)
        assert pilot.app.screen.front.title == "Overview"
        assert is_there(stopped_child[0])
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ModelScreen))
        await until(pilot, lambda: not is_there(stopped_child[0]), 60)


async def test_reading_again_ends_the_check_that_hangs_and_begins_another(
    bench: Any, until: Any, sound: Path, stopped_child: list[int]
) -> None:
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: stopped_child, 60)
        await pilot.press("u")
        await until(pilot, lambda: len(stopped_child) == 2, 60)
        await until(pilot, lambda: not is_there(stopped_child[0]), 60)
        os.kill(stopped_child[1], signal.SIGCONT)
        await until(pilot, lambda: judged(pilot), 60)
        assert pilot.app.screen.view.findings == ()


async def test_a_folder_that_vanishes_while_it_is_checked_ends_in_sentences(
    bench: Any, until: Any, picture: Any, sound: Path, stopped_child: list[int]
) -> None:
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: stopped_child and not pilot.app.screen.view.reading, 60)
        shutil.rmtree(sound)
        os.kill(stopped_child[0], signal.SIGCONT)
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "there is no such folder" in text(picture, pilot))
        shown = text(picture, pilot)
        assert "Traceback" not in shown
        assert "parameters 856" in shown
        for key in ("down", "enter", "escape", "right", "left", "u"):
            await pilot.press(key)
        await until(pilot, lambda: len(stopped_child) == 2, 60)
        os.kill(stopped_child[1], signal.SIGCONT)
        await until(pilot, lambda: judged(pilot), 60)
        assert text(picture, pilot).count("there is no such folder") == 1
        assert "nothing wrong" not in text(picture, pilot)


async def test_a_check_that_is_killed_is_told_and_what_reading_found_stays(
    bench: Any, until: Any, picture: Any, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Aside.ask

    def killed(self: Aside, action: str, values: Any, stopped: Callable[[], bool]) -> Any:
        if action == "check" and self._child:
            os.kill(self._child.pid, signal.SIGKILL)
        return ask(self, action, values, stopped)

    monkeypatch.setattr(Aside, "ask", killed)
    async with bench(str(broken)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "the process that performs check was ended by SIGKILL" in text(picture, pilot))
        assert f"x {SHARDS[1]}: missing" in text(picture, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "severity x error" in text(picture, pilot))


@pytest.mark.parametrize("name", ["tokenizer_config.json", "generation_config.json", "chat_template.jinja"])
async def test_a_fifo_among_the_files_holds_nobody(
    bench: Any, until: Any, picture: Any, sound: Path, name: str
) -> None:
    (sound / name).unlink(missing_ok=True)
    os.mkfifo(sound / name)
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: f"{name}: a FIFO" in text(picture, pilot))


async def test_a_template_without_end_keeps_no_key_waiting(bench: Any, until: Any, picture: Any, sound: Path) -> None:
    told = json.loads((sound / "tokenizer_config.json").read_text())
    told["chat_template"] = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    (sound / "tokenizer_config.json").write_text(json.dumps(told))
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.screen.view.judgement.resolution, 60)
        if pilot.app.screen.view.judgement.check is None:
            await pilot.press("right")
            assert pilot.app.screen.front.title == "Config"
            await pilot.press("left")
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "HB602" in text(picture, pilot))


def test_no_line_of_a_finding_is_wider_than_its_place() -> None:
    from hfbench.checks.finding import Finding

    odd = Finding(
        id="HB142",
        name="x",
        severity="error",
        file="\x1b[31m" + "n" * 300,
        message="wide \u4e2d\u6587 " * 30,
        remedy="do " * 40,
    )
    for width in (12, 20, 51, 76):
        for _, spans in finding_lines([odd], width, ASCII, under_way=False):
            from hfbench.widgets.cells import spans_width

            assert spans_width(spans) <= width
            assert "\x1b" not in "".join(part for part, _ in spans)
