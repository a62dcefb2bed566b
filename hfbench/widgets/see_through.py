"""Containers that paint nothing: what lies below them is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.widget import Widget
else:
    Widget = object  # Textual takes CSS and focus from the first base that is a widget: the one beside this


class SeeThrough(Widget):
    """A container with neither background nor border of its own.

    Textual paints every line of every container, also where children or other containers cover it: with five of them
    around a table, more of a repaint went into blanks than into the table.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual's hook: no line, so that those of the screen show."""
        return []
