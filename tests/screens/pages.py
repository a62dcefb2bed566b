"""What tests of the Model screen and its tabs look at."""

from __future__ import annotations

from typing import Any, TypeVar

from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.base import ModelTab

Tab = TypeVar("Tab", bound=ModelTab)


def text(picture: Any, pilot: Any) -> str:
    """All that is on the screen, with one space for any white space: sentences may be broken anywhere."""
    return " ".join("\n".join(picture(pilot)).split())


def read(pilot: Any) -> bool:
    """The model in front is read."""
    screen = pilot.app.screen
    return isinstance(screen, ModelScreen) and not screen.view.reading


def judged(pilot: Any) -> bool:
    """The model in front is read and judged."""
    return read(pilot) and not pilot.app.screen.view.judgement.under_way


async def brought_to_front(pilot: Any, until: Any, kind: type[Tab]) -> Tab:
    """A tab of the model in front, once it has shown all it has."""
    await until(pilot, lambda: read(pilot))
    pilot.app.screen.action_front(kind.__name__)
    tab: Tab = pilot.app.screen.query_one(kind)
    await until(pilot, lambda: tab.at_rest)
    await pilot.pause()
    return tab
