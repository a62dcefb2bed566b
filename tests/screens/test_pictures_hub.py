"""A hub on the Models screen as pictures: what it lists, and why it does not."""

# ruff: noqa: F401, F811 - fixtures of the other pictures are imported by name

from __future__ import annotations

from typing import Any

import pytest
from test_pictures import LOOKS, place, take
from textual.pilot import Pilot

from hfbench.actions.hub_search import HubSearchResult
from hfbench.errors import HfbenchError
from hfbench.hub.endpoints import Endpoint
from hfbench.hub.found import FoundModel
from hfbench.screens.hub_asks import EndpointsKnown, HubLists, PageListed, PageLost
from hfbench.screens.hub_pane import HubPane
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.hub_rows import HubPage
from hfbench.widgets.record_table import RecordTable


def model(name: str, count: int, **more: Any) -> FoundModel:
    told = {"task": "text-generation", "library": "transformers", "modified": "2026-05-02T10:00:00Z", "likes": 12}
    return FoundModel(id=name, reference=f"lab:{name}", parameters=count, downloads=count // 40_000, **{**told, **more})


MODELS = (
    model("team/smollm2-135m", 134_515_008, tags=("transformers", "safetensors", "llama", "license:apache-2.0")),
    model("team/qwen2-7b-instruct", 7_615_616_512, private=True),
    model("meta-llama/Llama-3.1-70B-Instruct", 70_553_706_496, gated="manual"),
    model("team/minilm-l6", 22_713_216, task="sentence-similarity", created="2026-04-01T10:00:00Z"),
)


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a scene and look; answers are given, no hub is asked."""

    def test_hub(self, take: Any, until: Any, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def answered(pane: HubPane, page: HubPage) -> PageListed:
            return PageListed(page, HubSearchResult(endpoint="lab", url=page.url, models=MODELS, cursor="more"))

        take(look, scene(until, monkeypatch, answered))

    def test_hub_out_of_reach(self, take: Any, until: Any, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        error = HfbenchError(
            "cannot be reached: Connection refused",
            where="lab (http://lab:8080)",
            remedy="is the hub running at http://lab:8080?",
        )
        take(look, scene(until, monkeypatch, lambda pane, page: PageLost(error)))


def scene(until: Any, monkeypatch: pytest.MonkeyPatch, answer: Any) -> Any:
    """The endpoint `lab` in front, listed with this answer."""

    async def play(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        await until(pilot, lambda: isinstance(screen, ModelsScreen) and screen.at_rest)
        pane = screen.query_one(HubPane)
        monkeypatch.setattr(HubLists, "ask", lambda lists, page: pane.post_message(answer(pane, page)))
        hubs = (Endpoint("hub", "https://huggingface.co"), Endpoint("lab", "http://lab:8080"))
        screen.post_message(EndpointsKnown(hubs, "hub"))
        await pilot.pause()
        sources = screen.query_one("#sources", RecordTable)
        screen.set_focus(sources)
        assert sources.move_to("hub:lab")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: pane.page is not None and pane.page.asked and not pane.busy)

    return play
