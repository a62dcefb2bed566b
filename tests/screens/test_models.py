"""The Models screen: what is on this machine, whatever state it is in, and what its keys do."""

from __future__ import annotations

import json
import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_model import make

from hfbench.actions.resolve import Resolve
from hfbench.config import Config, ModelsConfig
from hfbench.jobs.run import Run
from hfbench.models.catalog import describe, list_local
from hfbench.paths import cache_root
from hfbench.screens import model_loads
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_list import forget_recent, is_of, list_source
from hfbench.screens.model_loads import Loads, in_a_sentence
from hfbench.screens.model_look import LARGE_HEADER, has_large_header, look_at
from hfbench.screens.models import ModelsScreen
from hfbench.screens.recent import read_recent, remember
from hfbench.widgets.record_table import RecordTable

BREAK = {
    "good": lambda folder: None,
    "lfs": lambda folder: (folder / "model.safetensors").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123\n"
    ),
    "list": lambda folder: (folder / "config.json").write_text("[1, 2]"),
    "bare": lambda folder: (folder / "config.json").unlink(),
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in an empty folder: the models of the developer's own are not listed."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def roots(tmp_path: Path, make_model: Any) -> Config:
    for name, harm in BREAK.items():
        harm(make_model(f"models/{name}"))
    return Config(models=ModelsConfig(roots=(str(tmp_path / "models"),)))


def looked(pilot: Any) -> bool:
    screen = pilot.app.screen
    return isinstance(screen, ModelsScreen) and len(screen.listings) == 3 and not screen.looking


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 16)])
async def test_every_model_has_a_name_a_size_with_its_unit_and_a_state(
    bench: Any, until: Any, picture: Any, roots: Config, size: tuple[int, int]
) -> None:
    async with bench(config=roots).run_test(size=size) as pilot:
        await until(pilot, lambda: looked(pilot))
        await pilot.pause()
        text = picture(pilot)
        rows = {name: next(line for line in text if re.search(rf"\b{name} ", line)) for name in BREAK}
        assert all(re.search(r"\d (B|KiB) ", row) for row in rows.values())
        assert re.search(r"KiB  ok", rows["good"])
        assert all("x error" in rows[name] for name in ("lfs", "list", "bare"))
        assert any("Local        4" in line for line in text)
        if size != (60, 16):
            assert "llama" in rows["good"]
            assert "97.0k" in rows["good"].replace("96.8k", "97.0k")


async def test_the_details_say_what_the_model_is_and_what_is_wrong(
    bench: Any, until: Any, picture: Any, roots: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = threading.Event()  # the runtimes never answer: their sentence would take the place of another
    monkeypatch.setattr(model_loads, "loads_in", lambda *asked: leaving.wait(60) and Loads(True, "loads"))
    async with bench(config=roots).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        screen = pilot.app.screen
        screen.models.move_to(str(next(e.entry.folder for e in screen.looks.values() if e.entry.name == "good")))
        await until(
            pilot, lambda: "LlamaForCausalLM · 2 layers · 4/2 heads · 8,192 context" in "\n".join(picture(pilot))
        )
        assert "read without a fault; enter checks it" in "\n".join(picture(pilot))
        assert "last: no job yet; B measures it" in "\n".join(picture(pilot))
        await pilot.press("down")
        await until(pilot, lambda: "this is a git-lfs pointer" in "\n".join(picture(pilot)))
    leaving.set()


async def test_an_empty_machine_says_what_makes_a_model(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        await until(pilot, lambda: "hfbench demo makes a small one" in "\n".join(picture(pilot)))
        await pilot.press("enter", "y", "down", "end", "u")
        await until(pilot, lambda: looked(pilot))
        assert isinstance(pilot.app.screen, ModelsScreen)


async def test_a_root_that_is_no_folder_is_named(bench: Any, until: Any, picture: Any, tmp_path: Path) -> None:
    config = Config(models=ModelsConfig(roots=(str(tmp_path / "gone"),)))
    async with bench(config=config).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "models.roots names no folder" in "\n".join(picture(pilot)))


async def test_enter_opens_b_measures_and_y_copies_the_model_under_the_cursor(
    bench: Any, until: Any, roots: Config, tmp_path: Path
) -> None:
    async with bench(config=roots).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        await pilot.press("y")
        await until(pilot, lambda: (cache_root() / "clipboard.txt").exists())
        chosen = (cache_root() / "clipboard.txt").read_text()
        assert Path(chosen).parent == tmp_path / "models"
        assert pilot.app.screen.chosen_model == chosen
        await pilot.press("B")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.texts["model"] == chosen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen))
        await until(pilot, lambda: read_recent() == [chosen])


async def test_a_opens_the_palette(bench: Any, until: Any, roots: Config) -> None:
    from textual.command import CommandPalette

    async with bench(config=roots).run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))


async def test_tab_moves_between_sources_and_models(bench: Any, until: Any, roots: Config) -> None:
    async with bench(config=roots).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        seen = set()
        for _ in range(3):
            await pilot.press("tab")
            seen.add(pilot.app.screen.focused.id)
        assert {"sources", "models"} <= seen


async def test_recent_models_are_a_source_and_one_that_is_gone_says_so(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder, gone = make_model("elsewhere/mine"), make_model("elsewhere/gone")
    remember(str(folder))
    remember(str(gone))
    shutil.rmtree(gone)
    async with bench().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        pilot.app.screen.query_one("#sources", RecordTable).focus()
        await pilot.press("end")
        await until(pilot, lambda: pilot.app.screen.source == "recent" and looked(pilot))
        await until(pilot, lambda: re.search(r"gone .*x error", "\n".join(picture(pilot))))
        await until(pilot, lambda: re.search(r"mine .*ok", "\n".join(picture(pilot))))
        await until(pilot, lambda: "there is no such folder" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        assert pilot.app.screen.focused.id == "models"


async def test_a_recent_model_is_taken_off_by_a_key_and_its_folder_stays(
    bench: Any, until: Any, make_model: Any
) -> None:
    folder, other = make_model("elsewhere/mine"), make_model("elsewhere/other")
    remember(str(folder))
    remember(str(other))
    async with bench().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        screen = pilot.app.screen
        screen.bring("recent")
        await until(pilot, lambda: screen.source == "recent" and looked(pilot))
        screen.set_focus(screen.models)
        await pilot.press("D")
        await until(pilot, lambda: looked(pilot) and len(screen.listings["recent"].entries) == 1)
    assert read_recent() == [str(folder)]
    assert other.is_dir()


def test_names_of_jobs_that_lead_nowhere_are_not_recent_nor_is_what_was_taken_off(make_model: Any) -> None:
    used = [str(make_model("elsewhere/mine")), "lab:org/mistyped", "org/mistypde", "/no/such/folder"]
    entries = list_source("recent", ModelsConfig(), used).entries
    assert [entry.name for entry in entries] == ["mine"]
    forget_recent(entries[0], used)
    assert not list_source("recent", ModelsConfig(), used).entries
    remember(used[0])
    assert len(list_source("recent", ModelsConfig(), used).entries) == 1, "opened again it is back"


def test_two_recent_models_of_one_name_are_told_apart(make_model: Any) -> None:
    for name in ("one/deep/tiny", "two/deep/tiny", "three/other"):
        remember(str(make_model(name)))
    names = [entry.name for entry in list_source("recent", ModelsConfig()).entries]
    assert names == ["other", "two/deep/tiny", "one/deep/tiny"]


def test_a_job_on_a_hub_is_none_on_a_folder_of_that_name(
    make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [folder] = list_local([make_model("org/name")])
    monkeypatch.chdir(tmp_path)
    cached = replace(folder, source="cache", reference="org/name", folder=tmp_path / "cache")
    assert is_of("org/name", folder)
    assert not is_of("org/name", folder, on_hub=True)
    assert is_of("org/name", cached, on_hub=True)


async def test_the_cache_is_a_source(bench: Any, until: Any, picture: Any, make_model: Any, tmp_path: Path) -> None:
    commit = "c" * 40
    make_model(f"hf/hub/models--org--cached/snapshots/{commit}")
    refs = tmp_path / "hf/hub/models--org--cached/refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    async with bench().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        pilot.app.screen.query_one("#sources", RecordTable).focus()
        await pilot.press("down")
        await until(pilot, lambda: pilot.app.screen.source == "cache" and looked(pilot))
        await until(pilot, lambda: "org/cached" in "\n".join(picture(pilot)))
        assert pilot.app.screen.chosen_model == "org/cached"


async def test_the_filter_narrows_the_list_and_rescanning_finds_what_is_new(
    bench: Any, until: Any, picture: Any, roots: Config, make_model: Any
) -> None:
    async with bench(config=roots).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        await pilot.press("slash", *"bare", "enter")
        await until(pilot, lambda: pilot.app.screen.models.shown == 1)
        make_model("models/barely-new")
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.screen.models.shown == 2 and looked(pilot))
        assert "barely-new" in "\n".join(picture(pilot))


async def test_names_cannot_reach_the_terminal_as_control_characters(
    bench: Any, until: Any, picture: Any, make_model: Any, tmp_path: Path
) -> None:
    make_model("models/evil\x1b[2J\u202e", config={"model_type": "a\x07b", "architectures": ["x\x1b]0;y"]})
    config = Config(models=ModelsConfig(roots=(str(tmp_path / "models"),)))
    async with bench(config=config).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: looked(pilot))
        await until(pilot, lambda: "evil\\x1b[2J\\u202e" in "\n".join(picture(pilot)))
        assert not set("\x1b\x07\u202e") & set("".join(picture(pilot)))


def test_a_large_header_is_read_by_a_child_with_the_same_answer(make_model: Any) -> None:
    many = {f"model.layers.{row}.mlp.experts.{row}.down_proj.weight": ("F32", (1,)) for row in range(24_000)}
    folder = make_model(tensors=many)
    small = make_model("models/small")
    assert (folder / "model.safetensors").stat().st_size > LARGE_HEADER
    assert has_large_header(folder)
    assert not has_large_header(small)
    for entry in list_local([folder, small]):
        assert look_at(entry).entry == describe(entry)


def test_looking_at_a_folder_that_went_away_is_an_entry_that_says_so(make_model: Any) -> None:
    [entry] = list_local([make_model()])
    shutil.rmtree(entry.folder)
    look = look_at(entry)
    assert look.entry.state == "x"
    assert look.entry.problem


async def test_the_details_say_which_runtimes_load_the_model_under_the_cursor(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    for name in ("a-sound", "b-own-code"):
        (tmp_path / "models").mkdir(exist_ok=True)
        make(tmp_path / "models" / name)
    code = tmp_path / "models" / "b-own-code" / "config.json"
    code.write_text(json.dumps({**json.loads(code.read_text()), "model_type": "mine", "architectures": ["Mine"]}))
    config = Config(models=ModelsConfig(roots=(str(tmp_path / "models"),)))
    async with bench(config=config).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        sentence = "ok: loads in transformers, vLLM, TensorRT-LLM and Megatron-core"
        await until(pilot, lambda: any(sentence in line for line in picture(pilot)), 60)
        await pilot.press("down")
        await until(pilot, lambda: any("!: no runtime loads it as it is" in line for line in picture(pilot)), 60)
        await pilot.press("up")
        await until(pilot, lambda: any(sentence in line for line in picture(pilot)))
        await until(pilot, lambda: not pilot.app.screen.resolver.busy)


async def test_whoever_scrolls_past_asks_for_nothing(
    bench: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        model_loads, "loads_in", lambda reference, cache, stopped: asked.append(reference) or Loads(True, "loads")
    )
    for number in range(6):
        (tmp_path / "models").mkdir(exist_ok=True)
        make(tmp_path / "models" / f"m{number}")
    config = Config(models=ModelsConfig(roots=(str(tmp_path / "models"),)))
    async with bench(config=config).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: looked(pilot))
        pilot.app.screen.models.action_last()
        pilot.app.screen.models.action_move(-1)
        await until(pilot, lambda: any(each.endswith("m4") for each in asked), 60)
        assert not any(each.endswith(("m5", "m3", "m2")) for each in asked)


def test_a_sentence_says_who_loads_and_who_does_not(tmp_path: Path) -> None:
    folder = make(tmp_path / "tiny")
    (folder / "config.json").write_text(
        json.dumps({**json.loads((folder / "config.json").read_text()), "architectures": ["PhimoeForCausalLM"]})
    )
    told = in_a_sentence(Resolve(model=str(folder)).perform(Run()))
    assert told.somewhere
    assert told.sentence.startswith("loads in transformers")
    assert ", not in " in told.sentence
