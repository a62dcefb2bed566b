"""A theme without its colours: nothing of them is left, and what they told can be told from attributes."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from hfbench.paths import packaged_themes
from hfbench.theming import load_themes
from hfbench.widgets.colourless import Colourless

THEMES = load_themes([packaged_themes()]).loaded


def without(theme: Theme, ink: str, paper: str, **more: object) -> Style:
    """The style of a text in one variable of a theme on another, as it is painted under NO_COLOR."""
    fg, bg = (Color.parse(theme.variables[name]).rich_color for name in (ink, paper))
    style = Style(color=fg, bgcolor=bg, **more)  # type: ignore[arg-type]
    [segment] = Colourless(theme).apply([Segment("x", style)], Color(0, 0, 0))
    assert segment.style is not None
    assert segment.style.color is not None
    assert segment.style.color.is_default
    assert segment.style.bgcolor is not None
    assert segment.style.bgcolor.is_default
    return segment.style


@pytest.mark.parametrize("name", THEMES)
def test_what_colours_tell_is_told_by_attributes(name: str) -> None:
    theme, ground = THEMES[name], "scrollbar-background"
    assert without(theme, "block-cursor-foreground", "block-cursor-background").reverse
    blurred = without(theme, "block-cursor-blurred-foreground", "block-cursor-blurred-background")
    assert blurred.reverse
    assert blurred.dim
    assert without(theme, "surface-active", "text").reverse, "the cursor of an input"
    assert without(theme, "text-muted", ground).dim
    assert without(theme, "text-error", ground).bold
    assert without(theme, "text-accent", ground).bold
    plain = without(theme, "text", ground)
    assert not (plain.bold)
    assert not (plain.dim)
    assert not (plain.reverse)


@pytest.mark.parametrize("name", THEMES)
def test_attributes_and_what_a_click_does_are_kept(name: str) -> None:
    style = without(THEMES[name], "text", "scrollbar-background", italic=True, meta={"@click": "help"})
    assert style.italic
    assert style.meta == {"@click": "help"}
