"""A few lines that take as many rows as they need."""

from __future__ import annotations

from hfbench.widgets.cells import Span
from hfbench.widgets.painted import Painted
from hfbench.widgets.span_view import LayOut


class LineBlock(Painted):
    """Paints lines laid out for its width; nothing to say takes no room."""

    DEFAULT_CSS = "LineBlock { height: auto; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lay_out: LayOut = lambda width: ()

    def show(self, lay_out: LayOut) -> None:
        """Show these lines."""
        self._lay_out = lay_out
        self._take_room(self.size.width)
        self.repaint()

    def on_resize(self) -> None:
        """Other lines may fit."""
        super().on_resize()
        self._take_room(self.size.width)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """As they were given."""
        return [list(line) for line in self._lay_out(width)]

    def _take_room(self, width: int) -> None:
        height = len(self._lay_out(width)) if width else 0
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
