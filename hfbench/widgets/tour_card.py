"""The card of the tour: a title with the keys that turn its pages, and two or three lines."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

TURN = "> skip  < back"


class TourCard(Static):
    """Words about what is on the screen. Keys among them stand in backticks."""

    DEFAULT_CSS = "TourCard { height: auto; width: 1fr; padding: 0 1; background: $panel; }"

    def show(self, title: str, text: str) -> None:
        """Show these words."""
        head = Content.assemble((title, "bold"), "   ", (TURN, "$text-muted"))
        parts = [(part, "$text-accent bold" if place % 2 else "") for place, part in enumerate(text.split("`"))]
        self.update(Content("\n").join([head, Content.assemble(*parts)]))
