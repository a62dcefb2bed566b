"""The looks of a scene: all of one size are taken in one run of the workbench, which changes its clothes."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Hashable
from pathlib import Path
from typing import Any

from textual.app import App
from textual.color import Color
from textual.pilot import Pilot
from textual.strip import Strip

from hfbench.app import Workbench

LEAST_CONTRAST = 4.5
"""Of text with what it stands on, as WCAG asks of text of usual size."""

PICTURES = "HFBENCH_PICTURES"
"""Environment variable: a folder for pictures of every scene in every theme at 80x24."""

Look = tuple[tuple[int, int], str, bool]
"""The terminal's size, the theme, and whether NO_COLOR is set."""

LOOKS: dict[str, Look] = {
    "80x24-dark": ((80, 24), "hfbench-dark", False),
    "120x40-light": ((120, 40), "hfbench-light", False),
    "80x24-ansi": ((80, 24), "hfbench-ansi", False),
    "80x24-monochrome": ((80, 24), "hfbench-dark", True),
    "120x40-monochrome": ((120, 40), "hfbench-contrast", True),
    "80x24-light": ((80, 24), "hfbench-light", False),
    "80x24-contrast": ((80, 24), "hfbench-contrast", False),
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
        themed = look == LOOKS["80x24-dark"]  # once for each scene: a theme changes nothing but styles
        looks = [] if alone else [each for each in LOOKS.values() if each[0] == look[0] and each != look]
        taken: dict[Look, str] = {}
        faint: list[str] = []

        async def pose(pilot: Pilot[None]) -> None:
            await play(pilot)
            for each in [look, *looks]:
                wear(app, each)
                await at_rest(pilot)
                taken[each] = app.export_screenshot(title=app.title, simplify=True)
            for theme in app.theme_names() if themed else ():
                wear(app, (look[0], theme, False))
                await pilot.pause()
                keep_picture(app, str(scene), theme)
                faint.extend(f"{theme}: {each}" for each in faint_texts(app))
            app.exit()

        app.run(headless=True, auto_pilot=pose, size=look[0])
        assert not faint, f"texts with a contrast below {LEAST_CONTRAST}: {'; '.join(dict.fromkeys(faint))}"
        for each in looks:
            self._pictures[scene, each] = taken[each]
        return taken[look]


def faint_texts(app: Workbench) -> list[str]:
    """Words on the screen that stand out too little from what they are painted on, with their contrast."""
    if app.native_ansi_color or app.current_theme.ansi:
        return []  # which colours those are the terminal decides
    found = []
    for strip in strips_in_front(app):
        for text, style, _ in strip:
            if style is None or not re.search(r"\w", text) or style.color is None or style.bgcolor is None:
                continue
            ink, paper = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
            ratio = contrast(ink, paper)
            if ratio < LEAST_CONTRAST:
                found.append(f"{text.strip()!r} {ink.hex} on {paper.hex}: {ratio:.2f}")
    return found


def strips_in_front(app: Workbench) -> list[Strip]:
    """What is painted, without the screen that a dialog dims behind itself."""
    strips = app.screen._compositor.render_strips()
    if not app.screen.is_modal:
        return strips
    boxes = [child.region for child in app.screen.children if child.display and child.region]
    return [strips[y].crop(box.x, box.right) for box in boxes for y in range(box.y, box.bottom)]


def contrast(ink: Color, paper: Color) -> float:
    """The ratio of luminances, as WCAG defines it."""
    darker, lighter = sorted(map(luminance, (ink, paper)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: Color) -> float:
    """Relative luminance of an sRGB colour."""
    parts = [each / 255 for each in (color.r, color.g, color.b)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def keep_picture(app: Workbench, scene: str, theme: str) -> None:
    """Write the picture below HFBENCH_PICTURES, if that names a folder: every screen in every theme."""
    if folder := os.environ.get(PICTURES):
        name = re.sub(r"\W+", "-", scene.partition("::")[2] or scene).strip("-")[:80]
        path = Path(folder) / theme / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(app.export_screenshot(title=app.title, simplify=True), encoding="utf-8")


def wear(app: Workbench, look: Look) -> None:
    """Give a running workbench a theme, and colours or none, as if it had been started with them."""
    _, app.theme, no_color = look
    if app.no_color != no_color:
        app.no_color = no_color
        app._invalidate_css()
        app.refresh_css(animate=False)
