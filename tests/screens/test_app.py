"""The workbench itself: keys, themes, palette, jump mode, help, and terminals of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette

from hfbench.app import binding_ids
from hfbench.config import Config, UiConfig
from hfbench.screens.gpus import GpusScreen
from hfbench.screens.jobs import JobsScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.help_panel import HelpPanel
from hfbench.widgets.jump_overlay import JumpOverlay


async def test_number_keys_go_to_the_main_screens_and_never_pile_them_up(bench: Any, until: Any) -> None:
    async with bench().run_test() as pilot:
        for key, kind in [("2", JobsScreen), ("3", GpusScreen), ("2", JobsScreen), ("1", ModelsScreen)] * 3:
            await pilot.press(key)
            await until(pilot, lambda kind=kind: isinstance(pilot.app.screen, kind))
        assert len(pilot.app.screen_stack) == 1


async def test_q_leaves_from_every_main_screen(bench: Any) -> None:
    for key in "123":
        async with bench().run_test() as pilot:
            await pilot.press(key, "q")
            await pilot.pause()
            assert not pilot.app.is_running or pilot.app._exit


async def test_question_mark_always_helps(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        for key in "123":
            await pilot.press(key, "question_mark")
            await until(pilot, lambda: isinstance(pilot.app.screen, HelpPanel))
            assert pilot.app.screen.help_text.title in "\n".join(picture(pilot))
            assert any("q" in keys.split() for keys, _, _ in pilot.app.screen.keys)
            await pilot.press("escape")


async def test_a_key_map_of_the_user_replaces_a_key(bench: Any, until: Any) -> None:
    async with bench(config=Config(keys={"app.jobs": "J"})).run_test() as pilot:
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen))


async def test_a_key_map_that_names_nothing_is_told_with_the_nearest(bench: Any, until: Any, picture: Any) -> None:
    async with bench(config=Config(keys={"app.jbos": "J"})).run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "did you mean 'app.jobs'?" in " ".join("\n".join(picture(pilot)).split()).lower())


def test_every_binding_id_is_used_once() -> None:
    ids = binding_ids()
    assert {"app.quit", "job.cancel", "jobs.cancel", "launch.copy-command"} <= ids


@pytest.mark.parametrize("theme", ["hfbench-dark", "hfbench-light", "hfbench-ansi", "hfbench-contrast"])
async def test_every_theme_can_be_the_users(bench: Any, theme: str) -> None:
    async with bench(config=Config(ui=UiConfig(theme=theme))).run_test() as pilot:
        assert pilot.app.theme == theme


async def test_a_bad_user_theme_is_a_sentence_and_the_others_work(
    bench: Any, until: Any, picture: Any, home: Path
) -> None:
    folder = home / "config" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('name = "mine"\n[colors]\nbackground = "not a colour"\n')
    async with bench().run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "mine.toml" in "\n".join(picture(pilot)))
        assert pilot.app.theme == "hfbench-dark"


async def test_a_theme_edited_while_we_run_is_read_again(bench: Any, until: Any, home: Path) -> None:
    from hfbench.theming import packaged_themes

    folder = home / "config" / "themes"
    folder.mkdir(parents=True)
    text = (packaged_themes() / "hfbench-dark.toml").read_text().replace('name = "hfbench-dark"', 'name = "mine"')
    (folder / "mine.toml").write_text(text)
    async with bench(config=Config(ui=UiConfig(theme="mine")), watch=True).run_test() as pilot:
        assert pilot.app.theme == "mine"
        (folder / "mine.toml").write_text(text.replace("#14171c", "#000000"))
        await until(pilot, lambda: pilot.app.available_themes["mine"].background == "#000000")
        assert pilot.app.theme == "mine"


async def test_an_action_added_by_a_file_is_in_the_palette_and_has_a_form(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        await pilot.press(*"toy.count")
        await until(pilot, lambda: "Count up to a number" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.spec.name == "toy.count"


async def test_jump_mode_shows_letters_and_goes_there(bench: Any, until: Any) -> None:
    async with bench().run_test() as pilot:
        await pilot.press("semicolon")
        await until(pilot, lambda: isinstance(pilot.app.screen, JumpOverlay))
        letter, target = next(iter(pilot.app.screen.targets.items()))
        await pilot.press(letter)
        await until(pilot, lambda: pilot.app.screen.focused is target.widget)


@pytest.mark.parametrize("key", list("123"))
async def test_a_terminal_of_40x10_is_told_what_size_is_needed(bench: Any, until: Any, picture: Any, key: str) -> None:
    async with bench().run_test(size=(40, 10)) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: "this terminal is 40x10" in " ".join(picture(pilot)))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "this terminal is" not in " ".join(picture(pilot)))


@pytest.mark.parametrize("key", list("123"))
async def test_an_ascii_workbench_paints_nothing_but_ascii(bench: Any, picture: Any, key: str) -> None:
    async with bench(ascii=True).run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.pause(0.3)
        strange = {c for line in picture(pilot) for c in line if not c.isascii()}
        assert not strange
