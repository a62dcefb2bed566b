"""Verdicts, findings and the resolution trace as pictures: a sound model, one explained, one that needs code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from picture_models import llama
from small_model import make
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.screens.model import ModelScreen

CODE = {
    "AutoConfig": "configuration_mine.MineConfig",
    "AutoModelForCausalLM": "modeling_mine.MineForCausalLM",
}


def needs_code(folder: Path) -> Path:
    """A model of a type that no library knows, whose code imports a helper and lacks another."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    make(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "architectures": ["MineForCausalLM"], "auto_map": CODE}
    config["rope_scaling"] = {"type": "linear", "factor": 4.0}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "configuration_mine.py").write_text("from .helper import thing\n")
    (folder / "helper.py").write_text("")
    (folder / "modeling_mine.py").write_text("from .gone import other\n")
    return folder


@pytest.fixture(autouse=True)
def hub(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A cache whose path is the same each time: the trace says where it looked."""
    monkeypatch.setenv("HF_HOME", str(place / "hf"))


async def judged(pilot: Pilot[None], until: Any, folder: str, tab: str, keys: Sequence[str] = ()) -> None:
    """The model opened and judged, a tab of it in front, and some keys pressed."""
    app: Any = pilot.app
    app.open_model(folder)
    await until(pilot, lambda: isinstance(app.screen, ModelScreen) and app.screen.at_rest, 120)
    app.screen.action_front(tab)
    await pilot.pause()
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a screen and look."""

    def test_sound(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        (place / "models").mkdir()
        make(place / "models" / "sound")

        async def scene(pilot: Pilot[None]) -> None:
            await judged(pilot, until, "models/sound", "Overview")
            assert pilot.app.screen.view.findings == ()

        take(look, scene)

    def test_finding_explained(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        llama(place / "models" / "my-finetune-v3", layers=8, shards=4, missing=True)

        async def scene(pilot: Pilot[None]) -> None:
            await judged(pilot, until, "models/my-finetune-v3", "Overview", ["enter"])
            assert pilot.app.screen.front.explains

        take(look, scene)

    def test_runtimes(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        needs_code(place / "models" / "mine")

        async def scene(pilot: Pilot[None]) -> None:
            await judged(pilot, until, "models/mine", "RuntimesTab", ["down", "down", "down", "down"])
            assert pilot.app.screen.front.steps.total == 15

        take(look, scene)

    def test_step_explained(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        needs_code(place / "models" / "mine")

        async def scene(pilot: Pilot[None]) -> None:
            await judged(pilot, until, "models/mine", "RuntimesTab", [*["down"] * 5, "enter"])
            assert pilot.app.screen.front.explains

        take(look, scene)

    def test_verdict_explained(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        llama(place / "models" / "my-finetune-v3", layers=8, shards=4, missing=True)

        async def scene(pilot: Pilot[None]) -> None:
            await judged(pilot, until, "models/my-finetune-v3", "RuntimesTab", ["tab", *["down"] * 4, "enter"])
            assert pilot.app.screen.front.explains

        take(look, scene)
