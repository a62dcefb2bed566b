"""The tour: it follows where the user goes, presses nothing for them, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pages import text

from hfbench.app import Workbench
from hfbench.config import Config
from hfbench.screens.tour_stops import STOPS
from hfbench.widgets.tour_card import TourCard


@pytest.fixture
def on_tour(
    bench: Callable[..., Workbench], make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, until: Any
) -> Callable[..., Any]:
    """Begin the tour in a folder with one model, and wait for its first card."""
    make_model()
    monkeypatch.chdir(make_model("here/models/other").parent)

    async def begin(pilot: Any) -> None:
        await until(pilot, lambda: len(pilot.app.screen.listings) == 3)
        pilot.app.action_tour()
        await until(pilot, lambda: pilot.app.screen.query(TourCard))

    return begin


def at(pilot: Any) -> int:
    assert pilot.app.tour is not None
    place: int = pilot.app.tour.at
    return place


async def test_each_stop_is_left_by_the_key_its_card_names(bench: Any, until: Any, picture: Any, on_tour: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await on_tour(pilot)
        for number, key in enumerate(("enter", "t", "f", "B")):
            card = f"tour {number + 1}/{len(STOPS)} {STOPS[number].title}"
            await until(pilot, lambda card=card: card in text(picture, pilot))
            await pilot.press(key)
            await until(pilot, lambda number=number: at(pilot) == number + 1)
        await pilot.press("escape")  # not started: the next stop is reached by `>`
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "ModelScreen")
        await pilot.press("greater_than_sign", "2")
        await until(pilot, lambda: at(pilot) == 6)
        await pilot.press("6")
        await until(pilot, lambda: at(pilot) == 7)
        await pilot.press("colon")
        await until(pilot, lambda: at(pilot) == 8)
        await pilot.press("escape")
        await until(pilot, lambda: at(pilot) == 9)
        await until(pilot, lambda: "That is all" in text(picture, pilot))
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: pilot.app.tour is None)
        await until(pilot, lambda: "tour" not in text(picture, pilot))
        assert not any(screen.query(TourCard) for screen in pilot.app.screen_stack)


async def test_a_card_names_the_keys_of_the_users_own_key_map(
    bench: Any, until: Any, picture: Any, on_tour: Any
) -> None:
    async with bench(config=Config(keys={"model.tensors": "w"})).run_test(size=(80, 24)) as pilot:
        await on_tour(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: at(pilot) == 1)
        await until(pilot, lambda: "w shows its tensors" in text(picture, pilot))
        await pilot.press("w")
        await until(pilot, lambda: at(pilot) == 2)


async def test_back_goes_back_and_stays_at_the_first(bench: Any, until: Any, picture: Any, on_tour: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        await on_tour(pilot)
        await pilot.press("greater_than_sign", "greater_than_sign", "less_than_sign")
        assert at(pilot) == 1
        await pilot.press("less_than_sign", "less_than_sign")
        assert at(pilot) == 0
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "ModelsScreen")


async def test_the_place_of_a_stop_comes_along_with_who_skips_to_it_and_the_palette_has_its_turn(
    bench: Any, until: Any, picture: Any, on_tour: Any
) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        await on_tour(pilot)
        await until(pilot, lambda: "> skip" in text(picture, pilot))
        assert "On the Models screen" not in text(picture, pilot)
        for stop in STOPS[1:9]:
            await pilot.press("greater_than_sign")
            if stop.title == "A job":  # there is none, and skipping starts none
                await until(pilot, lambda: "On the screen of a job: It runs" in text(picture, pilot))
                assert not pilot.app.machine.known_jobs
                continue
            await until(pilot, lambda stop=stop: stop.here(pilot.app))
        assert at(pilot) == 8
        await pilot.pause(0.5)
        assert at(pilot) == 8  # nobody left the palette
        await pilot.press("escape")
        await until(pilot, lambda: at(pilot) == 9)


async def test_a_card_gives_way_where_the_terminal_is_too_small(bench: Any, until: Any, on_tour: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await on_tour(pilot)
        await pilot.resize_terminal(50, 12)
        await until(pilot, lambda: not pilot.app.screen.query_one(TourCard).display)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.title)
def test_a_card_takes_at_most_three_lines_of_text_at_80_columns(stop: Any) -> None:
    import textwrap

    assert len(textwrap.wrap(stop.words({}).replace("`", ""), 78)) <= 3
    assert len(textwrap.wrap(stop.words({}, here=False).replace("`", ""), 78)) <= 4
