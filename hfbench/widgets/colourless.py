"""A theme without its colours, as NO_COLOR asks: what they tell is told by bold, dim and reverse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rich.color import Color as Ink
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter, NoColor
from textual.theme import Theme

GROUNDS = ("background", "surface", "panel")
INKS = {
    "muted": ("text-muted", Style(dim=True)),
    "accent": ("text-accent", Style(bold=True)),
    "warning": ("text-warning", Style(bold=True)),
    "error": ("text-error", Style(bold=True)),
}
"""Colours of texts that mean something, each by the variable of the theme that holds it."""
PAPERS = {
    "cursor": ("block-cursor-background", Style(reverse=True, dim=False)),
    "typing": ("text", Style(reverse=True)),
    "blurred": ("block-cursor-blurred-background", Style(reverse=True, dim=True, bold=False)),
}
"""Grounds that mean something: the cursor where keys go, that of an input, which stands on the colour of texts, and the
one elsewhere, which is that of scrollbars, too."""


class Colourless(LineFilter):
    """Takes every colour out of what is painted in a theme; attributes take the place of those that mean something."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        variables = theme.variables
        grounds = {_ink(variables.get(name, "")) for name in GROUNDS}
        self._inks = _table(variables, INKS.values())
        self._papers = {ink: style for ink, style in _table(variables, PAPERS.values()).items() if ink not in grounds}
        self._plain = lru_cache(maxsize=1024)(self._without)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Textual's hook."""
        return [
            Segment(text, None if style is None else self._plain(style), control) for text, style, control in segments
        ]

    def _without(self, style: Style) -> Style:
        """The style by attributes alone."""
        paper = self._papers.get(style.bgcolor) if style.bgcolor else None
        ink = self._inks.get(style.color) if style.color and paper is None else None
        return style + NoColor.DEFAULT_COLORS + (paper or ink or Style.null())


def _table(variables: Mapping[str, str], wanted: Iterable[tuple[str, Style]]) -> dict[Ink, Style]:
    return {ink: style for name, style in wanted if (ink := _ink(variables.get(name, ""))) is not None}


def _ink(text: str) -> Ink | None:
    return Color.parse(text).rich_color if text else None
