"""The looks of a scene: all of one size are taken in one run of the workbench, which changes its clothes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from textual.app import App
from textual.filter import Monochrome, NoColor
from textual.pilot import Pilot

from hfbench.app import Workbench

Look = tuple[tuple[int, int], str, bool]
"""The terminal's size, the theme, and whether NO_COLOR is set."""

LOOKS: dict[str, Look] = {
    "80x24-dark": ((80, 24), "hfbench-dark", False),
    "120x40-light": ((120, 40), "hfbench-light", False),
    "80x24-ansi": ((80, 24), "hfbench-ansi", False),
    "80x24-monochrome": ((80, 24), "hfbench-dark", True),
    "120x40-monochrome": ((120, 40), "hfbench-contrast", True),
}

AtRest = Callable[[Pilot[None]], Awaitable[None]]


class Taken(App[str]):
    """Stands before `snap_compare` for a workbench whose picture was taken already."""

    def __init__(self, svg: str) -> None:
        super().__init__()
        self.svg = svg

    def run(self, **_: Any) -> str:
        return self.svg


class Album:
    """Pictures that are taken and not compared yet."""

    def __init__(self) -> None:
        self._pictures: dict[tuple[Hashable, Look], str] = {}

    def take(self, scene: Hashable, look: Look, app: Workbench, play: AtRest, at_rest: AtRest, *, alone: bool) -> str:
        """The SVG of a scene in a look; the first look of a size plays it, and keeps the others of that size.

        `app` was made for this look. When `alone` is true nothing is kept: each look has a run of its own.
        """
        if (svg := self._pictures.pop((scene, look), None)) is not None:
            return svg
        looks = [] if alone else [each for each in LOOKS.values() if each[0] == look[0] and each != look]
        taken: dict[Look, str] = {}

        async def pose(pilot: Pilot[None]) -> None:
            await play(pilot)
            for each in [look, *looks]:
                wear(app, each)
                await at_rest(pilot)
                taken[each] = app.export_screenshot(title=app.title, simplify=True)
            app.exit()

        app.run(headless=True, auto_pilot=pose, size=look[0])
        for each in looks:
            self._pictures[scene, each] = taken[each]
        return taken[look]


def wear(app: Workbench, look: Look) -> None:
    """Give a running workbench a theme, and colours or none, as if it had been started with them."""
    _, app.theme, no_color = look
    if app.no_color != no_color:
        app.no_color = no_color
        app._filters = [each for each in app._filters if not isinstance(each, (Monochrome, NoColor))]
        if no_color:
            app._filters.append(NoColor() if app.native_ansi_color else Monochrome())
        app._invalidate_css()
        app.refresh_css(animate=False)
