"""What a model in view fills into forms: a push gets its folder, and the hub it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.registry import find
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.model_values import push_values, values_for


def words(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("model", "folder", "filled"),
    [
        ("/models/tiny", "/models/tiny", {"folder": "/models/tiny"}),
        ("/models/tiny", "", {"folder": "/models/tiny"}),
        ("lab:org/name", "/cache/x", {"folder": "/cache/x", "model": "lab:org/name"}),
        ("lab:org/name@dev", "/cache/x", {"folder": "/cache/x", "model": "lab:org/name@dev"}),
        ("org/name@" + "0a" * 20, "/cache/x", {"folder": "/cache/x", "model": "org/name"}),
        ("lab:org/name", "", {"model": "lab:org/name"}),
        ("demo", "/data/demo", {"folder": "/data/demo"}),
        ("", "", {}),
    ],
)
def test_a_push_sends_the_folder_to_where_the_model_came_from(model: str, folder: str, filled: dict[str, str]) -> None:
    assert push_values(model, folder) == filled


def test_other_actions_take_the_model_by_the_field_that_wants_one() -> None:
    assert values_for(find("verify"), "m", "/m") == {"model": "m"}
    assert values_for(find("convert.safetensors"), "m", "/m") == {"source": "m"}
    assert values_for(find("gpus"), "m", "/m") == {}


async def test_p_on_a_model_opens_a_form_that_says_what_is_pushed(bench: Any, until: Any, make_model: Any) -> None:
    folder: Path = make_model()
    async with bench(str(folder)).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: getattr(pilot.app.screen, "chosen_folder", ""))
        await pilot.press("P")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        texts = pilot.app.screen.state.texts
        assert (texts["folder"], texts["model"]) == (str(folder), "")


async def test_a_model_that_is_not_here_says_which_key_fetches_it(bench: Any, until: Any, picture: Any) -> None:
    async with bench("no-such-org/no-such-model").run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "p fetches it from a hub, escape goes back" in words(picture(pilot)))
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.texts["model"] == "no-such-org/no-such-model"
