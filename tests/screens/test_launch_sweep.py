"""A form that varies fields: what makes it a sweep, what it says of it, and the script it is saved as."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_folders import NOW, make_job

from hfbench.actions.registry import find
from hfbench.commands.sweep_run import _of_action as sweep_of
from hfbench.config import Config, ExecutorConfig
from hfbench.jobs.events import Finished, Running, Started
from hfbench.paths import jobs_root, sweeps_root
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.launch_runs import asked_on, places_field
from hfbench.screens.launch_sweep import script_of
from hfbench.scripts.command import load_plan
from hfbench.sweeps.snapshot import read_sweep
from hfbench.widgets.form import FieldInput
from hfbench.widgets.form_state import FormState, next_choice


async def opened(pilot: Any, until: Any, action: str, **values: object) -> LaunchScreen:
    """The form of an action."""
    pilot.app.open_form(action, values)
    await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
    screen: LaunchScreen = pilot.app.screen
    return screen


def text(picture: Any, pilot: Any) -> str:
    return " ".join(" ".join(picture(pilot)).split())


# -- typing -------------------------------------------------------------------


async def test_what_is_typed_over_a_list_of_choices_just_entered_takes_its_place(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="x")
        field = screen.query_one("#field-dtype", FieldInput)
        field.value = "bf16,fp16"
        field.focus()
        await pilot.press(*"fp32")
        assert field.value == "fp32"


async def test_a_letter_typed_over_a_choice_takes_its_place(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="x")
        field = screen.query_one("#field-dtype", FieldInput)
        field.focus()
        await pilot.press(*"bf16")
        assert field.value == "bf16"
        await pilot.press("backspace", "backspace")
        assert field.value == "bf"
        await pilot.press(*"16")
        assert field.value == "bf16"


async def test_a_comma_adds_a_choice_and_space_walks_through_those_that_are_left(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="x")
        field = screen.query_one("#field-dtype", FieldInput)
        field.focus()
        await pilot.press("space", "comma", "space")
        assert field.value == "bf16,auto"
        await pilot.press("space", "comma", *"fp32")
        assert field.value == "bf16,fp16,fp32"
        await until(pilot, lambda: screen.state.axes == {"dtype": ("bf16", "fp16", "fp32")})


async def test_a_letter_in_the_middle_of_a_choice_is_only_a_letter(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="x")
        field = screen.query_one("#field-dtype", FieldInput)
        field.focus()
        await pilot.press("end", "left", "x")
        assert field.value == "autxo"


def test_choices_that_are_listed_already_are_not_offered_again() -> None:
    dtype = find("bench.generate").param("dtype")
    assert next_choice(dtype, "bf16,") == "bf16,auto"
    assert next_choice(dtype, "bf16,auto") == "bf16,fp16"
    assert next_choice(dtype, "bf16,auto,fp16,fp32") == "bf16,auto,fp16,fp32"


# -- what it stands for -------------------------------------------------------


async def test_cells_and_time_are_told_from_earlier_jobs_of_the_same_action_and_model(
    bench: Any, until: Any, picture: Any
) -> None:
    events = [
        Started(at=NOW, pid=1, ticks=1, host="h"),
        Running(at=NOW, device="cpu"),
        Finished(at=NOW + 30, seconds=30),
    ]
    make_job(jobs_root(), "aaaaaa", "bench.generate", {"model": "/m"}, events, result={})
    async with bench().run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="/m")
        screen.query_one("#field-batch", FieldInput).value = "1..8*2"
        screen.query_one("#field-dtype", FieldInput).value = "fp32,bf16"
        await until(pilot, lambda: "of 8 cells" in text(picture, pilot) and "about 4 m 00 s" in text(picture, pilot))
        assert "1 earlier job of bench.generate" in text(picture, pilot)
        assert "sweep of 4: 1, 2, 4, 8" in text(picture, pilot)


async def test_too_many_cells_are_told_before_and_refused(
    bench: Any, until: Any, picture: Any, toasts: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(pilot, until, "toy.count")
        screen.query_one("#field-to", FieldInput).value = "1..1000"
        screen.query_one("#field-stray", FieldInput).value = "true,false"
        screen.query_one("#field-pause", FieldInput).value = "1..10"
        await until(pilot, lambda: "of 20,000 cells, and 10,000 is the most" in text(picture, pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "20,000 cells" in toasts(pilot))
    assert not sweeps_root().exists()


async def test_a_wrong_item_of_a_list_is_named_as_it_is_typed(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "bench.generate", model="x")
        screen.query_one("#field-batch", FieldInput).value = "4,0"
        await until(pilot, lambda: "0 is below the least value 1" in text(picture, pilot))
        screen.query_one("#field-batch", FieldInput).value = "8..1"
        await until(pilot, lambda: "holds no value" in text(picture, pilot))
        assert screen.state.request is None


def test_free_text_keeps_its_commas_and_a_model_in_quotation_marks_keeps_its_own() -> None:
    spec = find("bench.generate")
    plain = FormState.of(spec, {"model": "./a,b", "prompt_text": "Hello, world"})
    assert plain.axes == {}
    assert plain.values["model"] == "./a,b"
    assert plain.values["prompt_text"] == "Hello, world"
    assert FormState.of(spec, {"model": "x"}).typed("model", "a,b").axes == {"model": ("a", "b")}


@given(
    batches=st.lists(st.integers(1, 64), min_size=2, max_size=4, unique=True),
    dtypes=st.sampled_from(["bf16", "bf16,fp32", "fp16,bf16,fp32"]),
    prompt=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12),
)
def test_the_command_of_a_form_makes_the_same_sweep(batches: list[int], dtypes: str, prompt: str) -> None:
    if prompt.strip() != prompt or prompt in ("none", "None"):
        return  # an edge of spaces is not kept by a one-line field
    spec = find("bench.generate")
    state = FormState.of(spec, {"model": "some/model", "prompt_text": prompt})
    state = state.typed("batch", ",".join(map(str, batches))).typed("dtype", dtypes)
    words = shlex.split(state.command)
    assert words[:5] == ["hfbench", "sweep", "run", "bench", "generate"]
    sweep, _ = sweep_of(spec, words[5:])
    assert [dict(cell.values) for cell in sweep.plan.cells] == cells_of(state)
    assert [step.request for _, step in sweep.plan] == requests_of(state)


def cells_of(state: FormState) -> list[dict[str, object]]:
    """The cells in the order the script runs them."""
    cells: list[dict[str, object]] = [{}]
    for name, values in state.axes.items():
        cells = [{**cell, name: value} for cell in cells for value in values]
    return cells


def requests_of(state: FormState) -> list[object]:
    return [state.spec.build({**state.values, **cell}) for cell in cells_of(state)]


async def test_the_script_is_saved_with_its_matrix_and_an_existing_file_is_not_replaced(
    bench: Any, until: Any, toasts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy_actions: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(pilot, until, "toy.count")
        screen.query_one("#field-to", FieldInput).value = "1,2"
        await until(pilot, lambda: screen.state.cells == 2)
        await pilot.press("S", "enter")
        await until(pilot, lambda: "run it with: hfbench --script" in toasts(pilot))
        await pilot.press("S", "enter")
        await until(pilot, lambda: "is there already" in " ".join(toasts(pilot).split()))
    plan = load_plan(tmp_path / "toy.count-to.hfb.yaml")
    assert [dict(cell.values) for cell in plan.cells] == [{"to": 1}, {"to": 2}]
    assert (tmp_path / "toy.count-to.hfb.yaml").read_text() == script_of(screen.state, "toy.count to")


async def test_a_sweep_that_is_started_while_recording_is_recorded_as_its_matrix(
    bench: Any, until: Any, tmp_path: Path, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        screen = await opened(pilot, until, "toy.count", pause="0")
        screen.query_one("#field-to", FieldInput).value = "1,2"
        await until(pilot, lambda: screen.state.cells == 2)
        await pilot.press("enter")
        await until(pilot, lambda: len(pilot.app.recorder) == 1)
        (recorded,) = pilot.app.recorder.save(tmp_path / "recorded.hfb.yaml")
        await until(pilot, lambda: read_sweep(sweeps_root() / "count-to").state == "finished")
    plan = load_plan(recorded)
    assert [dict(cell.values) for cell in plan.cells] == [{"to": 1}, {"to": 2}]


# -- where it runs ------------------------------------------------------------


async def test_a_sweep_may_name_several_places_and_one_job_takes_one(
    bench: Any, until: Any, picture: Any, toasts: Any, toy_actions: Path
) -> None:
    config = Config(executors={"cluster": ExecutorConfig(kind="slurm", partition="debug")})
    async with bench(config=config).run_test(size=(80, 24), notifications=True) as pilot:
        screen = await opened(pilot, until, "toy.count")
        field = screen.query_one("#field-on", FieldInput)
        assert field.value == "local"
        field.value = "cluster"
        await until(pilot, lambda: "hfbench toy count --on cluster" in text(picture, pilot))
        field.value = "local,cluster"
        await until(pilot, lambda: screen.state.running["on"] == ("local", "cluster"))
        await pilot.press("enter")
        await until(pilot, lambda: "one job runs in one place" in " ".join(toasts(pilot).split()))
        screen.query_one("#field-to", FieldInput).value = "1,2"
        await until(pilot, lambda: "--vary to=1,2 --on local --on cluster" in screen.state.command)


@pytest.mark.parametrize("named", [{}, {"h100": ExecutorConfig(kind="slurm", partition="gpu")}], ids=["none", "h100"])
async def test_a_place_is_always_a_field_and_offers_what_is_configured_and_the_forms_of_others(
    bench: Any, until: Any, picture: Any, toy_actions: Path, named: dict[str, ExecutorConfig]
) -> None:
    async with bench(config=Config(executors=named)).run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "toy.count")
        field = screen.query_one("#field-on", FieldInput)
        field.focus()
        offered = []
        for _ in range(4 + len(named)):
            await until(pilot, lambda: screen.state.texts["on"] == field.value)
            offered.append(field.value)
            await pilot.press("space")
        assert offered == ["local", *named, "slurm:PARTITION", "ray:HOST:PORT", "ssh:HOST"]
        assert field.value == "local"


async def test_a_form_of_a_place_is_refused_until_what_stands_in_capitals_is_typed_over(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, "toy.count")
        field = screen.query_one("#field-on", FieldInput)
        field.focus()
        await pilot.press("space", "space", "space")
        await until(pilot, lambda: "type what is meant in place of HOST" in text(picture, pilot))
        assert screen.state.request is None
        await pilot.press(*"box2")
        assert field.value == "ssh:box2"
        await until(pilot, lambda: "hfbench toy count --on ssh:box2" in text(picture, pilot))
        await pilot.press("comma", "r")
        await until(pilot, lambda: "ray:HOST:PORT" in text(picture, pilot))
        await until(pilot, lambda: field._suggestion)
        await pilot.press("right", *"head:6379")
        assert field.value == "ssh:box2,ray:head:6379"


@pytest.mark.parametrize(
    ("typed", "places"),
    [
        ("slurm:nosuch", ("slurm:nosuch",)),
        ("slurm", ("slurm",)),
        ("ray://head:10001", ("ray://head:10001",)),
        ("slurm:gpu,gres=gpu:a100:1,time=30m", ("slurm:gpu,gres=gpu:a100:1,time=30m",)),
        ("local, slurm:gpu,time=30m ,ssh:box2", ("local", "slurm:gpu,time=30m", "ssh:box2")),
    ],
)
def test_a_place_is_read_as_the_command_line_reads_it(typed: str, places: tuple[str, ...]) -> None:
    state = FormState.of(find("bench.generate"), {"model": "x", "batch": 1}, (places_field({}, ""),))
    state = state.typed("on", typed)
    assert (state.problems, asked_on(state)) == ({}, places)
    varied = shlex.split(state.typed("batch", "1,2").command)
    assert [varied[at + 1] for at, word in enumerate(varied) if word == "--on"] == list(places)
    if len(places) == 1:
        words = shlex.split(state.command)
        assert words[words.index("--on") + 1] == places[0]


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("slrum:gpu", "no executor is called 'slrum:gpu'; did you mean 'slurm'?"),
        ("slurm:gpu,gress=1", "has no setting 'gress' to give; did you mean 'gres'?"),
        ("local,", "has nothing between two commas"),
        ("ssh:", "names no host; write ssh:HOST"),
    ],
)
def test_a_place_that_cannot_be_read_is_refused_as_it_is_typed(typed: str, why: str) -> None:
    state = FormState.of(find("bench.generate"), {"model": "x"}, (places_field({}, ""),)).typed("on", typed)
    assert why in state.problems["on"]
