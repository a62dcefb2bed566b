"""The workbench itself: keys, themes, palette, jump mode, help, and terminals of every kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from hfbench.app import Workbench, binding_ids
from hfbench.config import Config, UiConfig
from hfbench.paths import packaged_themes
from hfbench.screens.confirm import AskText
from hfbench.screens.gpus import GpusScreen
from hfbench.screens.job import JobScreen
from hfbench.screens.jobs import JobsScreen
from hfbench.screens.kernels import KernelsScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.models import ModelsScreen
from hfbench.screens.watchers import Watchers
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help_panel import HelpPanel
from hfbench.widgets.jump_overlay import JumpOverlay


async def test_number_keys_go_to_the_main_screens_and_never_pile_them_up(bench: Any, until: Any) -> None:
    async with bench().run_test() as pilot:
        for key, kind in [("2", JobsScreen), ("3", GpusScreen), ("4", KernelsScreen), ("1", ModelsScreen)] * 3:
            await pilot.press(key)
            await until(pilot, lambda kind=kind: isinstance(pilot.app.screen, kind))
        assert len(pilot.app.screen_stack) == 1


async def test_q_leaves_from_every_main_screen(bench: Any) -> None:
    for key in "1234":
        async with bench().run_test() as pilot:
            await pilot.press(key, "q")
            await pilot.pause()
            assert not pilot.app.is_running or pilot.app._exit


async def test_question_mark_always_helps(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        for key in "1234":
            await pilot.press(key, "question_mark")
            await until(pilot, lambda: isinstance(pilot.app.screen, HelpPanel))
            assert pilot.app.screen.help_text.title in "\n".join(picture(pilot))
            assert any("q" in keys.split() for keys, _, _ in pilot.app.screen.keys)
            await pilot.press("escape")


async def test_a_key_map_of_the_user_replaces_a_key(bench: Any, until: Any) -> None:
    async with bench(config=Config(keys={"app.jobs": "J"})).run_test() as pilot:
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen))


async def test_a_key_map_that_names_nothing_is_told_with_the_nearest(bench: Any, until: Any, toasts: Any) -> None:
    async with bench(config=Config(keys={"app.jbos": "J"})).run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "did you mean 'app.jobs'?" in " ".join(toasts(pilot).split()).lower())


def test_every_binding_id_is_used_once() -> None:
    ids = binding_ids()
    assert {"app.quit", "job.cancel", "jobs.cancel", "launch.copy-command"} <= ids


@pytest.mark.parametrize("theme", ["hfbench-dark", "hfbench-light", "hfbench-ansi", "hfbench-contrast"])
async def test_every_theme_can_be_the_users(bench: Any, theme: str) -> None:
    async with bench(config=Config(ui=UiConfig(theme=theme))).run_test() as pilot:
        assert pilot.app.theme == theme


async def test_a_bad_user_theme_is_a_sentence_and_the_others_work(
    bench: Any, until: Any, toasts: Any, home: Path
) -> None:
    folder = home / "config" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('name = "mine"\n[colors]\nbackground = "not a colour"\n')
    async with bench().run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "mine.toml" in toasts(pilot).replace(" ", ""))
        assert pilot.app.theme == "hfbench-dark"


async def test_a_theme_edited_while_we_run_is_read_again(bench: Any, until: Any, home: Path) -> None:
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


@pytest.mark.parametrize("key", list("1234"))
async def test_a_terminal_of_40x10_is_told_what_size_is_needed(bench: Any, until: Any, picture: Any, key: str) -> None:
    async with bench().run_test(size=(40, 10)) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: "this terminal is 40x10" in " ".join(picture(pilot)))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "this terminal is" not in " ".join(picture(pilot)))


READ: dict[str, Callable[[Any], bool]] = {
    "1": lambda screen: len(screen.listings) == 3 and not screen.looking,
    "2": lambda screen: screen.is_mounted,
    "3": lambda screen: screen.is_mounted,
    "4": lambda screen: screen._read,
}
"""The main screens by their keys: whether all was read that is shown without a watcher."""


@pytest.mark.parametrize("key", list(READ))
async def test_an_ascii_workbench_paints_nothing_but_ascii(bench: Any, until: Any, picture: Any, key: str) -> None:
    async with bench(ascii=True).run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: READ[key](pilot.app.screen))
        strange = {c for line in picture(pilot) for c in line if not c.isascii()}
        assert not strange


async def test_quitting_while_recording_asks_before_the_steps_are_lost(
    bench: Any, until: Any, toy_actions: Path, tmp_path: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        pilot.app.open_form("toy.count", {"to": 1})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        await pilot.press("enter")
        await until(pilot, lambda: len(pilot.app.recorder) == 1)
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        pilot.app.screen.query_one(Input).value = str(tmp_path / "kept.hfb.yaml")
        await pilot.press("enter")
        await until(pilot, lambda: not pilot.app.is_running or pilot.app._exit)
    assert "- toy.count: {to: 1, save_as: count}" in (tmp_path / "kept.hfb.yaml").read_text()
    assert "name: kept" in (tmp_path / "kept.hfb.yaml").read_text()


async def test_the_title_says_recording_on_every_screen(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        for key in "1234":
            await pilot.press(key)
            await until(pilot, lambda: "recording" in picture(pilot)[0])


async def test_a_mistake_in_a_theme_keeps_its_last_good_colours(bench: Any, until: Any, home: Path) -> None:
    folder = home / "config" / "themes"
    folder.mkdir(parents=True)
    text = (packaged_themes() / "hfbench-dark.toml").read_text().replace('name = "hfbench-dark"', 'name = "mine"')
    (folder / "mine.toml").write_text(text)
    async with bench(config=Config(ui=UiConfig(theme="mine")), watch=True).run_test() as pilot:
        (folder / "mine.toml").write_text("bad = [")
        await until(pilot, lambda: pilot.app._notifications)
        assert pilot.app.theme == "mine"
        (folder / "mine.toml").write_text(text.replace("#14171c", "#010203"))
        await until(pilot, lambda: pilot.app.current_theme.background == "#010203")


async def test_the_key_line_names_the_keys_of_the_users_map(bench: Any, until: Any, picture: Any) -> None:
    async with bench(config=Config(keys={"app.quit": "Q"})).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Q quit" in picture(pilot)[-1])
        assert "q quit" not in picture(pilot)[-1]


async def test_a_terminal_made_large_again_gives_the_keys_back(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and pilot.app.screen.focused)
        before = pilot.app.screen.focused
        await pilot.resize_terminal(50, 12)
        await until(pilot, lambda: pilot.app.screen.has_class("-small"))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: pilot.app.screen.focused is before)


async def test_the_palette_changes_the_theme_and_quits(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        await pilot.press(*"theme hfbench-light")
        await until(pilot, lambda: "theme hfbench-light" in "\n".join(picture(pilot)[4:]))
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.theme == "hfbench-light")


async def test_escape_clears_a_kept_filter_before_it_leaves(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and pilot.app.screen.focused)
        await pilot.press("slash", "z", "enter")
        bar = pilot.app.screen.query_one(FilterBar)
        await until(pilot, lambda: bar.text == "z")
        await pilot.press("escape")
        await until(pilot, lambda: bar.text == "")
        assert isinstance(pilot.app.screen, JobsScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))


async def test_watchers_begin_once_also_when_no_frame_was_told_to_be_painted(
    bench: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first screen that a key covers at once keeps what was to be called after its paint."""
    begun: list[Watchers] = []
    start = Watchers.start
    monkeypatch.setattr(Watchers, "start", lambda self: (begun.append(self), start(self)))
    monkeypatch.setattr(Workbench, "call_after_refresh", lambda self, *arguments, **more: True)
    async with bench(watch=True).run_test() as pilot:
        await until(pilot, lambda: pilot.app.machine.jobs is not None, 60)
        pilot.app._first_frame_painted()
        assert len(begun) == 1
