"""The Runtimes tab: every step of the trace in order, the verdicts below it, and all of one on enter."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pages import judged, text
from small_model import all_of, config, make, put

from hfbench.actions import aside
from hfbench.actions.resolve import Resolve
from hfbench.actions.runtimes import Runtimes
from hfbench.jobs.run import Run
from hfbench.paths import cache_root
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.explanation import MOST_FACTS, Explanation, data_facts
from hfbench.screens.model_tabs.runtimes import RuntimesTab, Steps, Verdicts


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return make(tmp_path / "models" / "sound")


async def opened(pilot: Any, until: Any) -> RuntimesTab:
    """The tab in front, once everything is judged."""
    await until(pilot, lambda: judged(pilot), 60)
    pilot.app.screen.action_front("RuntimesTab")
    tab: RuntimesTab = pilot.app.screen.query_one(RuntimesTab)
    await until(pilot, lambda: tab.steps.total)
    return tab


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_every_step_and_every_verdict_is_told_in_order(
    bench: Any, until: Any, picture: Any, sound: Path, size: tuple[int, int]
) -> None:
    wanted = Resolve(model=str(sound)).perform(Run())
    async with bench(str(sound)).run_test(size=size) as pilot:
        tab = await opened(pilot, until)
        told = [
            (tab.steps.rows[row].cells["step"], tab.steps.rows[row].cells["found"]) for row in range(tab.steps.total)
        ]
        assert told == [(step.step, step.found) for step in wanted.steps]
        await until(pilot, lambda: any("config format" in line and "config.json" in line for line in picture(pilot)))
        names = [row.title for row in Runtimes(model=str(sound)).perform(Run()).rows]
        shown = "\n".join(picture(pilot))
        places = [shown.find(f"ok  {name}") for name in names]
        assert len(names) == 10
        assert -1 not in places
        assert places == sorted(places)


async def test_enter_opens_all_of_a_step_and_escape_goes_back(
    bench: Any, until: Any, picture: Any, sound: Path
) -> None:
    config(rope_scaling={"type": "linear", "factor": 4.0})(sound)
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        tab = await opened(pilot, until)
        tab.steps.move_to("8")
        await pilot.press("enter")
        await until(pilot, lambda: "of 15: rope" in text(picture, pilot))
        page = text(picture, pilot)
        for part in (
            "looked at config.json: the root",
            "found ok rope_scaling {type 'linear', factor 4.0}",
            "before.rope_scaling.type linear",
            "after.vllm.rope_type linear",
        ):
            assert part in page
        assert isinstance(pilot.app.screen.focused, Explanation)
        await pilot.press("escape")
        await until(pilot, lambda: "Why the next step" in text(picture, pilot))
        assert isinstance(pilot.app.screen.focused, Steps)
        assert isinstance(pilot.app.screen, ModelScreen)


async def test_a_verdict_names_files_read_files_passed_over_and_code_that_would_run(
    bench: Any, until: Any, picture: Any, sound: Path
) -> None:
    code = {"AutoConfig": "configuration_mine.C", "AutoModelForCausalLM": "modeling_mine.M"}
    all_of(
        config(model_type="mine", architectures=["M"], auto_map=code),
        put("configuration_mine.py", "from .helper import x\n"),
        put("helper.py", ""),
        put("modeling_mine.py", ""),
        put("extra.bin", "x"),
    )(sound)
    async with bench(str(sound)).run_test(size=(120, 40)) as pilot:
        tab = await opened(pilot, until)
        await pilot.press("tab", "enter")
        await until(pilot, lambda: "verdict x does not load" in text(picture, pilot))
        page = "\n".join(line[60:] for line in picture(pilot))
        page = " ".join(page.split())
        assert "needs remote code: model_type is 'mine'" in page
        assert "files model.safetensors" in page
        assert "passed over extra.bin" in page
        assert "remote code configuration_mine.py helper.py modeling_mine.py" in page
        assert isinstance(pilot.app.screen.focused, Verdicts)
        await pilot.press(*["down"] * 4)
        await until(
            pilot,
            lambda: "Give --trust-remote-code" in " ".join("\n".join(line[60:] for line in picture(pilot)).split()),
        )
        await pilot.press("escape")
        assert not tab.explains


async def test_x_opens_the_form_of_a_runtime_and_copies_the_command_that_serves(
    bench: Any, until: Any, picture: Any, sound: Path
) -> None:
    board = cache_root() / "clipboard.txt"
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        tab = await opened(pilot, until)
        await until(pilot, lambda: "x start" in text(picture, pilot))
        await pilot.press("tab", "down", "x")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        form = pilot.app.screen.state
        assert form.texts["model"] == str(sound)
        assert form.texts["mode"] == "compile"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        tab.verdicts.move_to("onnx")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        form = pilot.app.screen.state
        assert (form.texts["builder"], form.texts["out"]) == ("onnx", "engines/sound-onnx")
        await pilot.press("escape")
        tab.verdicts.move_to("vllm")
        await pilot.press("x")
        await until(pilot, lambda: board.exists() and board.read_text() == f"vllm serve {sound}")
        tab.verdicts.move_to("llama_cpp")
        await until(pilot, lambda: "x start" not in text(picture, pilot))


async def test_a_command_that_cannot_work_is_refused_with_its_reason(bench: Any, until: Any, sound: Path) -> None:
    code = {"AutoConfig": "configuration_mine.C", "AutoModelForCausalLM": "modeling_mine.M"}
    edits = [put("configuration_mine.py", ""), put("modeling_mine.py", "")]
    all_of(config(model_type="mine", architectures=["M"], auto_map=code), *edits)(sound)
    async with bench(str(sound)).run_test(size=(120, 40)) as pilot:
        tab = await opened(pilot, until)
        tab.verdicts.move_to("vllm")
        await pilot.press("x")
        await until(pilot, lambda: pilot.app._notifications)
        [told] = pilot.app._notifications
        assert "the model needs code of its repository: configuration_mine.py, modeling_mine.py" in told.message


async def test_a_reference_that_leads_nowhere_is_traced_as_far_as_it_goes(bench: Any, until: Any, picture: Any) -> None:
    async with bench("org/nothing-here").run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "1 ok local path nothing is there" in text(picture, pilot))
        shown = text(picture, pilot)
        assert "2 x cache the repository is not in the cache" in shown
        assert "3 ~ hub not asked: HF_HUB_OFF" in shown


async def test_until_the_answer_comes_the_tab_says_so_and_a_child_that_died_is_told(
    bench: Any, until: Any, picture: Any, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    start = aside.start_beside

    def start_and_stop(module: str) -> Any:
        child = start(module)
        os.kill(child.pid, signal.SIGSTOP)
        children.append(child.pid)
        return child

    monkeypatch.setattr(aside, "start_beside", start_and_stop)
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: children, 60)
        pilot.app.screen.action_front("RuntimesTab")
        await until(pilot, lambda: text(picture, pilot).count("resolving ...") == 2)
        await pilot.press("enter", "down", "tab", "enter", "y")
        os.kill(children[0], signal.SIGKILL)
        await until(pilot, lambda: len(children) == 2, 60)  # the check is asked of another child
        os.kill(children[1], signal.SIGCONT)
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "the process that performs resolve was ended by SIGKILL" in text(picture, pilot))


async def test_y_copies_the_row_and_the_explanation(bench: Any, until: Any, sound: Path) -> None:
    board = cache_root() / "clipboard.txt"
    async with bench(str(sound)).run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        await pilot.press("down", "down", "down", "y")
        await until(pilot, lambda: board.exists() and board.read_text().startswith("config format; config.json; "))
        await pilot.press("enter", "y")
        await until(pilot, lambda: board.read_text().startswith("4 of 15: config format\nlooked at: config.json"))


async def test_names_out_of_files_reach_the_terminal_as_text(bench: Any, until: Any, picture: Any, sound: Path) -> None:
    config(model_type="\x1b[2J\u202e", architectures=["\x1b]0;x\x07"], auto_map={"AutoConfig": "\x1b[31m"})(sound)
    async with bench(str(sound), ascii=True).run_test(size=(80, 24)) as pilot:
        tab = await opened(pilot, until)
        for _ in range(tab.steps.total):
            await pilot.press("enter")
            await pilot.pause()
            assert not set("\x1b\x07\u202e") & set("".join(picture(pilot)))
            assert "".join(picture(pilot)).isascii()
            await pilot.press("escape", "down")


def test_data_of_any_shape_becomes_lines_of_a_bounded_number() -> None:
    told = {"a": {"b": 1, "c": ["x", "y"]}, "d": [1, 2], "e": {}, "f": None, "g": [{"h": "i"}, {"h": ""}], "j": ""}
    facts = list(data_facts(told))
    assert [(fact.label, fact.value) for fact in facts] == [
        ("a.b", "1"),
        ("a.c", "x"),
        ("", "y"),
        ("d", "[1, 2]"),
        ("f", "null"),
        ("g 1.h", "i"),
    ]
    assert len(list(data_facts({"names": [str(n) for n in range(5000)]}))) == MOST_FACTS + 1
    deep: Any = "x"
    for _ in range(150):
        deep = {"k": deep}
    assert json.dumps(next(data_facts(deep)).value) == '"x"'
