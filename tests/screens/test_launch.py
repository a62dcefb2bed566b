"""The Launch screen: the form of any action, its validation, and what it stands for."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.registry import find
from hfbench.commands.perform import parser_for
from hfbench.errors import HfbenchError
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.follow import wait_until
from hfbench.jobs.snapshot import State
from hfbench.paths import jobs_root
from hfbench.screens import launch
from hfbench.screens.job import JobScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.scripts.format import arguments_of, step_text
from hfbench.widgets.form import FieldInput, Form
from hfbench.widgets.form_state import FormState, next_choice


async def test_enter_starts_the_job_and_opens_its_page(bench: Any, until: Any, toy_actions: Path) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("toy.count", {"to": 2}))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
    (job,) = job_ids(jobs_root())
    snapshot = wait_until(JobDirectory(jobs_root() / job), lambda s: s.state.over, timeout=120)
    assert (snapshot.state, snapshot.params["to"]) == (State.FINISHED, 2)


async def test_a_wrong_value_is_named_as_it_is_typed_and_nothing_starts(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("toy.count"))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        field = pilot.app.screen.query_one("#field-to", FieldInput)
        field.value = "0"
        await until(pilot, lambda: "0 is below the least value 1" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, LaunchScreen)
        assert pilot.app.screen.focused is field
    assert job_ids(jobs_root()) == []


async def test_the_form_shows_the_command_and_it_changes_with_the_fields(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("toy.count"))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        pilot.app.screen.query_one("#field-to", FieldInput).value = "7"
        await until(pilot, lambda: "hfbench toy count --to 7" in "\n".join(picture(pilot)))


async def test_space_walks_through_choices(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("bench.generate", {"model": "x"}))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        field = pilot.app.screen.query_one("#field-dtype", FieldInput)
        field.focus()
        await pilot.press("space")
        await until(pilot, lambda: field.value == "bf16")


async def test_typing_in_a_field_just_entered_replaces_its_value_which_is_selected_and_said(
    bench: Any, until: Any, picture: Any
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_form("bench.generate", {"model": "x"})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        prompt = pilot.app.screen.query_one("#field-prompt", FieldInput)
        prompt.focus()
        await until(pilot, lambda: "128" in (row := row_of(picture, pilot, "prompt")) and "typing replaces" in row)
        assert prompt.selected_text == "128"
        await pilot.press(*"16,32")
        assert prompt.value == "16,32"
        await until(pilot, lambda: "sweep of 2: 16, 32" in row_of(picture, pilot, "prompt"))
        await pilot.press("down", "up", *"64")
        assert prompt.value == "64"
        await until(pilot, lambda: "typing replaces" not in "".join(picture(pilot)))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["left", "9"], "9128"),
        (["right", "9"], "1289"),
        (["home", "9"], "9128"),
        (["end", "9"], "1289"),
        (["end", "backspace", "0"], "120"),
        (["comma", "9"], "128,9"),
        (["backspace", "7"], "7"),
    ],
)
async def test_arrows_and_a_comma_keep_the_value_of_a_field_just_entered(
    bench: Any, until: Any, keys: list[str], value: str
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_form("bench.generate", {"model": "x"})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        prompt = pilot.app.screen.query_one("#field-prompt", FieldInput)
        prompt.focus()
        await until(pilot, lambda: prompt.held)
        await pilot.press(*keys)
        assert prompt.value == value


def row_of(picture: Any, pilot: Any, label: str) -> str:
    """The line of a field."""
    return str(next(line for line in picture(pilot) if line.split()[:1] == [label]))


async def test_the_whole_help_of_the_field_with_the_keys_is_shown(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 40)) as pilot:
        pilot.app.push_screen(LaunchScreen("bench.generate", {"model": "x"}))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        pilot.app.screen.query_one("#field-mode", FieldInput).focus()
        mode = find("bench.generate").param("mode")
        whole = f"{mode.help}; one of eager, static-cache, compile, cudagraph"
        await until(pilot, lambda: whole in " ".join("\n".join(picture(pilot)).split()))
        pilot.app.screen.query_one("#field-batch", FieldInput).focus()
        whole = "Sequences in flight; at least 1, at most 4096"
        await until(pilot, lambda: whole in " ".join("\n".join(picture(pilot)).split()))


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_the_field_with_the_keys_is_in_view_in_a_form_that_varies_fields(
    bench: Any, until: Any, size: tuple[int, int]
) -> None:
    """What stands below grows with the field and with the sweep, and takes its room from the fields."""
    async with bench().run_test(size=size) as pilot:
        pilot.app.open_form("bench.generate", {"model": "./nowhere"}, texts={"batch": "1,2", "dtype": "fp32,bf16"})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and "model" in pilot.app.screen.facts)
        form = pilot.app.screen.query_one(Form)
        for field in form.query(FieldInput):
            await pilot.press("down")
            await until(pilot, lambda field=field: pilot.app.screen.focused is field)
            await until(pilot, lambda field=field: field.region in form.content_region)


async def test_what_has_too_little_room_below_the_fields_is_scrolled_by_a_key_the_key_line_names(
    bench: Any, until: Any, picture: Any
) -> None:
    async with bench().run_test(size=(60, 20)) as pilot:
        pilot.app.open_form("bench.generate", {"model": "./nowhere"}, texts={"batch": "1,2", "dtype": "fp32,bf16"})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and "model" in pilot.app.screen.facts)
        await pilot.press("down", "down")
        await until(pilot, lambda: "pgdn more below" in picture(pilot)[-1])
        assert "dtype=fp32,bf16 --vary" not in "\n".join(picture(pilot))
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: "dtype=fp32,bf16 --vary" in "\n".join(picture(pilot)))
        assert isinstance(pilot.app.screen.focused, FieldInput)


async def test_auto_says_which_device_it_is_here(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.push_screen(LaunchScreen("bench.generate", {"model": "x"}))
        await until(pilot, lambda: "auto is c" in "\n".join(picture(pilot)))


async def test_a_model_that_is_not_there_is_told_before_the_start(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.push_screen(LaunchScreen("bench.generate", {"model": "./nowhere"}))
        await until(pilot, lambda: "there is no such folder" in "\n".join(picture(pilot)))


async def test_escape_leaves_the_fields_first_and_the_form_second(bench: Any, until: Any, toy_actions: Path) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("toy.count"))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        await pilot.press("down")
        assert isinstance(pilot.app.screen.focused, FieldInput)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, Form))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, LaunchScreen))


async def test_what_is_started_while_recording_becomes_a_step(bench: Any, until: Any, toy_actions: Path) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        pilot.app.push_screen(LaunchScreen("toy.count", {"to": 2}))
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        assert "- toy.count: {to: 2, save_as: count}" in pilot.app.recorder.texts()[0]


async def test_a_disk_that_hangs_does_not_hold_the_exit(
    bench: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio joins its worker threads when it ends: what may hang runs in a daemon."""
    gate, asked = threading.Event(), threading.Event()

    def hang(reference: str) -> None:
        asked.set()
        gate.wait(60)
        raise HfbenchError("the disk is back")

    monkeypatch.setattr(launch, "resolve", hang)
    before = set(threading.enumerate())
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(LaunchScreen("bench.generate", {"model": "on/a/hung/disk"}))
        await until(pilot, asked.is_set)
        waiting = [each for each in threading.enumerate() if each not in before]
        assert waiting
        assert all(each.daemon for each in waiting if "asyncio" not in each.name)
        assert any(each.name == "hfbench-reading" for each in waiting)
    gate.set()


@given(
    batch=st.integers(1, 64),
    dtype=st.sampled_from(["auto", "bf16", "fp16", "fp32"]),
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    ci=st.floats(0.0001, 1),
)
def test_the_command_of_a_form_reads_back_to_the_same_request(batch: int, dtype: str, text: str, ci: float) -> None:
    spec = find("bench.generate")
    values = {"model": "some/model", "batch": batch, "dtype": dtype, "prompt_text": text, "ci": ci}
    request = FormState.of(spec, values).request
    if text.strip() != text or text in ("none", "None"):
        return  # an edge of spaces is not kept by a one-line field
    assert request is not None
    words = shlex.split(FormState.of(spec, values).command)[3:]
    told = vars(parser_for(spec).parse_args(words))
    again = spec.build({p.name: p.parse(told[p.name]) for p in spec.params if told[p.name] is not None})
    assert again == request
    assert step_text(spec.name, arguments_of(spec, request)).startswith("- bench.generate:")


def test_choices_go_round_and_other_fields_have_none() -> None:
    spec = find("bench.generate")
    assert next_choice(spec.param("attention"), "sdpa") == "eager"
    assert next_choice(spec.param("attention"), "eager") == "sdpa"
    assert next_choice(spec.param("attention"), "nonsense") == "sdpa"
    assert next_choice(spec.param("batch"), "1") is None
