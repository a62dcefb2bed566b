"""The Diff screen: two models chosen, compared at once, and their values as a job."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW, Held, make_job
from pages import text

from hfbench.actions.diff import Diff
from hfbench.actions.results import result_data
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.events import Event, Finished, Progress, Running, Started, to_line
from hfbench.jobs.run import Run
from hfbench.jobs.snapshot import State, read_job
from hfbench.models.catalog import ModelEntry
from hfbench.paths import jobs_root
from hfbench.screens.choose_model import ChooseModel, likeness, place_of
from hfbench.screens.diff import TABS, DiffScreen
from hfbench.screens.diff_ask import JobMoved
from hfbench.screens.diff_tabs.tensors import DiffTensorsTab
from hfbench.screens.job import JobScreen
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.base import Detail
from hfbench.widgets.diff_table import DiffTable
from hfbench.widgets.record_table import RecordTable

pytest.importorskip("numpy")

PATIENCE = 90.0


def write(folder: Path, tensors: Mapping[str, list[float]], **files: Any) -> Path:
    """A model of F32 tensors; `generation_config={}` becomes generation_config.json."""
    folder.mkdir(parents=True)
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    for name, content in {"config": {"model_type": "llama"}, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two models with one difference of each kind."""
    layers = {f"model.layers.{n}.w": [1.0, 2.0] for n in range(3)}
    a = write(
        tmp_path / "models" / "before",
        {**layers, "gone": [1.0], "module.head.w": [4.0], "long": [1.0, 2.0]},
        config={"model_type": "llama", "rope_scaling": {"factor": 8.0}},
        generation_config={"temperature": 0.6},
        tokenizer_config={"chat_template": "{% for m in messages %}\n{{ m }}\n{% endfor %}"},
    )
    b = write(
        tmp_path / "models" / "after",
        {**layers, "model.layers.1.w": [1.0, 2.5], "new": [1.0], "head.w": [4.0], "long": [1.0]},
        config={"model_type": "llama", "rope_scaling": {"factor": 32.0}},
        generation_config={"temperature": 0.7},
        tokenizer_config={"chat_template": "{% for m in messages %}\n{{ m.content }}\n{% endfor %}"},
    )
    return a, b


def compared(pilot: Any) -> bool:
    screen = pilot.app.screen
    return isinstance(screen, DiffScreen) and not screen.view.busy and screen.view.result is not None


def measured(pilot: Any) -> bool:
    return compared(pilot) and pilot.app.screen.view.result.values is not None


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_summary_tells_what_sets_them_apart(
    bench: Any, until: Any, picture: Any, pair: Any, size: tuple[int, int]
) -> None:
    async with bench().run_test(size=size) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        shown = text(picture, pilot)
        for told in (
            "different: 1 added, 1 removed, 1 renamed, 1 shape, 1 config, 1 generation, 1 template",
            "5 on both sides",
            "renamed 1 by module.=",
            "not compared; v compares them",
            "configuration ! 1 difference",
            "tokenizer the same",
            "Diff > before with after > Summary",
            "Tensors 4",
        ):
            assert told in shown


async def test_the_tabs_show_rows_of_the_result_and_details_on_enter(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: pilot.app.screen.front.title == "Tensors")
        await until(pilot, lambda: "removed gone F32 1" in text(picture, pilot))
        assert "added new F32 1" in text(picture, pilot)
        assert "shape long F32 2 F32 1" in text(picture, pilot)
        assert "renamed module.head.w module.=" in text(picture, pilot)
        await pilot.press("end", "enter")
        await until(pilot, lambda: "in B head.w (module.=)" in text(picture, pilot))
        await pilot.press("escape")
        assert not pilot.app.screen.front.query_one(Detail).display
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "changed rope_scaling.factor 8.0 32.0" in text(picture, pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "file config.json" in text(picture, pilot))
        await pilot.press("escape", "right_square_bracket")
        await until(pilot, lambda: "changed temperature 0.6 0.7" in text(picture, pilot))
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "nothing differs here" in text(picture, pilot))
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "-{{ m }} +{{ m.content }}" in text(picture, pilot))
        await pilot.press("right_square_bracket")
        assert pilot.app.screen.front.title == "Summary"


async def test_v_compares_the_values_as_a_job_and_fills_the_columns(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    async with bench(watch=True).run_test(size=(120, 40)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        await pilot.press("t", "v")
        await until(pilot, lambda: measured(pilot), PATIENCE)
        [id] = job_ids(jobs_root())
        job = read_job(JobDirectory(jobs_root() / id))
        assert (job.state, job.action, job.params["values"]) == (State.FINISHED, "diff", True)
        await until(pilot, lambda: "max |a-b|" in text(picture, pilot))
        assert "differ model.layers.1.w F32 2 F32 2 0.5 0.224" in text(picture, pilot)
        assert "equal model.layers.0.w" in text(picture, pilot)
        assert isinstance(pilot.app.screen, DiffScreen)
        assert pilot.app.recorder is not None
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "3 equal, 1 differ, 1 of another shape" in text(picture, pilot))
        assert "close means |a-b| <= 1e-08 + 1e-05 max(|a|,|b|) (F32: the usual)" in text(picture, pilot)


async def test_a_job_under_way_is_followed_by_a_screen_that_comes_later(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    a, b = map(str, pair)
    params = {"a": a, "b": b, "values": True}
    events: list[Event] = [Started(at=NOW - 9, pid=1, ticks=1, host="lab-3"), Running(at=NOW - 8, device="")]
    progress = Progress(at=NOW - 1, phase="values", done=30, total=100, unit="B")
    other = make_job(jobs_root(), "aaaa01", "diff", {**params, "b": a}, events)
    job = make_job(jobs_root(), "aaaa02", "diff", params, [*events, progress])
    held = [Held(other), Held(job)]
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(pilot.app.machine.known_jobs) == 2, PATIENCE)
        pilot.app.open_diff(a, b)
        await until(pilot, lambda: pilot.app.screen.view.job == job.id, PATIENCE)
        await until(pilot, lambda: "values" in text(picture, pilot) and "30%" in text(picture, pilot), PATIENCE)
        await pilot.press("v")
        assert len(job_ids(jobs_root())) == 2
        result = result_data(Diff(a=a, b=b, values=True).perform(Run()))
        (job.path / "result.json").write_text(json.dumps({"action": "diff", "seconds": 1.0, "result": result}))
        with job.events.open("ab") as file:
            file.write(to_line(Finished(at=NOW, seconds=1.0)))
        for each in held:
            each.release()
        await until(pilot, lambda: measured(pilot), PATIENCE)
        assert pilot.app.screen.view.result.counts["equal"] == 3


async def test_j_opens_the_job_and_leaving_does_not_stop_it(bench: Any, until: Any, pair: Any) -> None:
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        screen = pilot.app.screen
        await pilot.press("J")
        assert pilot.app.screen is screen
        await pilot.press("v")
        await until(pilot, lambda: job_ids(jobs_root()), PATIENCE)
        [id] = job_ids(jobs_root())
        screen.post_message(JobMoved(id, ()))
        await until(pilot, lambda: screen.view.job == id, PATIENCE)
        screen.action_job()
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen), PATIENCE)
        assert pilot.app.screen.job.id == id
        await pilot.press("escape", "escape")
        await until(pilot, lambda: read_job(JobDirectory(jobs_root() / id)).state is State.FINISHED, PATIENCE)


async def test_a_job_that_fails_says_why_and_the_rest_stays(bench: Any, until: Any, picture: Any, pair: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        shutil.rmtree(pair[1])
        await pilot.press("v")
        await until(pilot, lambda: pilot.app.screen.view.error, PATIENCE)
        await until(pilot, lambda: "there is no such folder" in text(picture, pilot))
        assert "1 added, 1 removed" in text(picture, pilot)
        assert "Traceback" not in text(picture, pilot)


async def test_a_side_that_cannot_be_opened_is_told_in_a_sentence(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_diff(str(pair[0]), "/nowhere/at/all")
        await until(pilot, lambda: pilot.app.screen.view.error, PATIENCE)
        await until(pilot, lambda: "there is no such folder" in text(picture, pilot))
        for _ in TABS:
            await pilot.press("right_square_bracket", "down", "enter", "s", "g", "o", "Y")
        assert "Traceback" not in text(picture, pilot)


async def test_broken_weights_are_trouble_and_the_files_are_still_compared(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    (pair[1] / "model.safetensors").write_bytes(b"nonsense")
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        shown = text(picture, pilot)
        assert "x trouble: 6 unread, 1 config" in shown
        assert "not compared x B: model.safetensors:" in shown
        assert "unread ! 6: the other side may hold them in a file that could not be read" in shown


async def test_equal_chooses_the_second_model_from_either_screen(
    bench: Any, until: Any, picture: Any, pair: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "models")
    async with bench(str(pair[0])).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel) and pilot.app.screen.at_rest)
        await until(pilot, lambda: "compare before with" in text(picture, pilot))
        table = pilot.app.screen.query_one(RecordTable)
        await until(pilot, lambda: table.total == 1)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel) and pilot.app.screen.at_rest)
        await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 1)
        await pilot.press(*"aft", "enter")
        await until(pilot, lambda: compared(pilot), PATIENCE)
        assert (Path(pilot.app.screen.view.a), Path(pilot.app.screen.view.b).name) == (pair[0], "after")
        await pilot.press("w")
        await until(pilot, lambda: compared(pilot) and Path(pilot.app.screen.view.b) == pair[0], PATIENCE)
        assert "1 added, 1 removed" in pilot.app.screen.view.result.headline


def entry(name: str, parent: str = "/models", source: Any = "local") -> ModelEntry:
    return ModelEntry(name=name, folder=Path(parent) / name, source=source, bytes=1, reference=f"{parent}/{name}")


def test_a_name_typed_whole_comes_first_then_those_that_begin_so() -> None:
    names = ["LiquidAI-LFM2-1.2B", "lm2-m2", "m2-large", "org/m2x", "org/m2", "m2"]
    found = sorted(map(entry, names), key=lambda each: likeness(each, "m2"))
    assert [each.name for each in found] == ["m2", "org/m2", "m2-large", "org/m2x", "LiquidAI-LFM2-1.2B", "lm2-m2"]
    assert likeness(entry("M2"), "m2") == likeness(entry("m2"), "/models/m2") == 0


def test_a_place_tells_models_of_one_name_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert place_of(entry("org/m2", "/data/models")) == "/data/models"
    assert place_of(entry("m2", "/home/me/models")) == "~/models"
    cached = replace(entry("org/m2", source="cache"), folder=Path("/hub/models--org--m2/snapshots") / ("1a" * 20))
    assert place_of(cached) == "1a1a1a1a1a1a  /hub"


async def test_a_name_typed_whole_is_taken_though_others_hold_it(
    bench: Any, until: Any, picture: Any, pair: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a-after", "after-all"):
        shutil.copytree(pair[1], tmp_path / "models" / name)
    monkeypatch.chdir(tmp_path / "models")
    async with bench(str(pair[0])).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel) and pilot.app.screen.at_rest)
        table = pilot.app.screen.query_one(RecordTable)
        await until(pilot, lambda: table.total == 3)
        await pilot.press(*"after")
        await until(pilot, lambda: Path(table.current or "").name == "after")
        await pilot.press("enter")
        await until(pilot, lambda: compared(pilot), PATIENCE)
        assert Path(pilot.app.screen.view.b) == pair[1]


async def test_a_path_that_is_no_model_of_the_list_is_taken_as_typed(
    bench: Any, until: Any, pair: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    async with bench(str(pair[0])).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        pilot.app.action_compare()
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel))
        for letter in str(pair[1]):
            await pilot.press({"/": "slash", "-": "minus", "_": "underscore"}.get(letter, letter))
        await pilot.press("enter")
        await until(pilot, lambda: compared(pilot), PATIENCE)
        assert pilot.app.screen.view.b == str(pair[1])


async def test_s_walks_through_the_statuses_and_the_filter_counts(
    bench: Any, until: Any, picture: Any, pair: Any
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        await pilot.press("t")
        table = pilot.app.screen.query_one(DiffTable)
        seen = []
        for _ in range(5):
            await pilot.press("s")
            seen.append(table.status)
            if table.status:
                await until(pilot, lambda: f"only: {table.status}" in text(picture, pilot) and not table.rows.busy)
                assert len(table.rows) == 1
        assert seen == ["removed", "added", "shape", "renamed", ""]
        await pilot.press("slash", *"new", "enter")
        await until(pilot, lambda: "1 of 4 match" in text(picture, pilot))


async def test_y_copies_the_command_that_says_the_same(
    bench: Any, until: Any, pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def copy(self: DiffScreen, told: str) -> None:
        copied.append(told)

    monkeypatch.setattr(DiffScreen, "copy", copy)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_diff(*map(str, pair))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        await pilot.press("y")
        await pilot.press("v")
        await until(pilot, lambda: measured(pilot), PATIENCE)
        await pilot.press("y", "t", "Y")
        await until(pilot, lambda: len(copied) == 3)
    assert copied[0] == f"hfbench diff {pair[0]} {pair[1]}"
    assert copied[1] == f"hfbench diff {pair[0]} {pair[1]} --values"
    assert copied[2] == "gone"


async def test_many_tensors_are_gathered_and_keys_are_answered_in_ascii(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    many = {f"model.layers.{n}.mlp.experts.{m}.w": [] for n in range(30) for m in range(300)}
    a, b = write(tmp_path / "a", many), write(tmp_path / "b", {"\x1b[2Jx": [1.0]})
    async with bench(ascii=True).run_test(size=(80, 24)) as pilot:
        pilot.app.open_diff(str(a), str(b))
        await until(pilot, lambda: compared(pilot), PATIENCE)
        await pilot.press("t")
        tab = pilot.app.screen.query_one(DiffTensorsTab)
        await until(pilot, lambda: tab.at_rest)
        await until(pilot, lambda: "removed + model.layers.*.mlp.experts.*.w 9,000" in text(picture, pilot))
        assert "added \\x1b[2Jx" in text(picture, pilot)
        assert "\n".join(picture(pilot)).isascii()
        await pilot.press("enter")
        await until(pilot, lambda: "model.layers.0.mlp.experts.299.w" in text(picture, pilot) or tab.table.cursor == 0)
        await pilot.press("g", "end")
        await until(pilot, lambda: tab.at_rest and tab.table.row_count() == 9001)
