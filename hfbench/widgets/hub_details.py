"""How a search stands, and the model under the cursor of a hub's list."""

from __future__ import annotations

from hfbench.hub.found import FoundModel
from hfbench.widgets.cells import Span, clip
from hfbench.widgets.hub_rows import HubPage, found_lines, status_line
from hfbench.widgets.painted import Painted


class HubStatus(Painted):
    """One line: what was asked and how much came of it."""

    DEFAULT_CSS = "HubStatus { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page: HubPage | None = None

    def show(self, page: HubPage) -> None:
        """Show how it stands."""
        self.page = page
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The line."""
        if self.page is None:
            return []
        return [[(clip(status_line(self.page, self.glyphs), width, ellipsis=self.glyphs.ellipsis), "muted")]]


class HubDetails(Painted):
    """The model under the cursor in four lines below a rule."""

    DEFAULT_CSS = "HubDetails { height: 5; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model: FoundModel | None = None
        self.page: HubPage | None = None

    def show(self, model: FoundModel | None, page: HubPage | None) -> None:
        """Show this one of that page."""
        self.model, self.page = model, page
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """A rule and the lines."""
        if self.model is None or self.page is None:
            return []
        return [[(self.glyphs.rule * width, "muted")], *found_lines(self.model, self.page, width, self.glyphs)]
