"""The Fit tab as pictures: what fits, what does not and why, formulas, and a model without a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from picture_models import llama
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.fit import FitTab


async def counted(pilot: Pilot[None], until: Any, folder: str, keys: Sequence[str] = ()) -> FitTab:
    """The model opened at its Fit tab, counted, and some keys pressed one after the other."""
    app: Any = pilot.app
    await until(pilot, lambda: app.machine.complete, 60)  # without a GPU here, the first one known is fitted to
    app.open_model(folder, "FitTab")
    await until(pilot, lambda: isinstance(app.screen, ModelScreen) and app.screen.at_rest, 120)
    tab: FitTab = app.screen.query_one(FitTab)
    for key in keys:
        await pilot.press(key)
        await until(pilot, lambda: tab.at_rest, 60)
    return tab


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a state and look."""

    def test_fits(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        llama(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            tab = await counted(pilot, until, "models/smollm2-135m")
            assert tab.result is not None
            assert tab.result.fits

        take(look, scene)

    def test_does_not_fit(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        llama(place / "models" / "smollm2-135m", layers=30, shards=1)

        async def scene(pilot: Pilot[None]) -> None:
            tab = await counted(pilot, until, "models/smollm2-135m", ["down", *["right"] * 6, "k", "G"])
            assert tab.result is not None
            assert (tab.result.limiting, tab.result.context) == ("kv_cache", 16384)

        take(look, scene)

    def test_formulas(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        llama(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            tab = await counted(pilot, until, "models/smollm2-135m", ["enter"])
            assert tab.formulas

        take(look, scene)

    def test_no_configuration(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        (llama(place / "models" / "bare") / "config.json").unlink()

        async def scene(pilot: Pilot[None]) -> None:
            tab = await counted(pilot, until, "models/bare")
            assert tab.result is not None
            assert tab.result.grid == ()

        take(look, scene)
