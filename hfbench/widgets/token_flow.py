"""A text as its tokens: one after the other as they stand in it, around the one under the cursor of a table."""

from __future__ import annotations

from hfbench.tokens.encoded import Encoded
from hfbench.widgets.cells import Span
from hfbench.widgets.painted import Painted
from hfbench.widgets.token_lines import flow, marks_of


class TokenFlow(Painted):
    """Lines of tokens, `most` of them at most. It lays out no more tokens than it shows."""

    def __init__(self, *, most: int = 3, id: str | None = None) -> None:
        super().__init__(id=id)
        self.most = most
        self.encoded: Encoded | None = None
        self.cursor = 0
        self._first, self._after = 0, 0

    def show(self, encoded: Encoded | None, cursor: int) -> None:
        """Show other tokens."""
        self.encoded, self.cursor, self._first = encoded, cursor, 0
        self.fit()
        self.repaint()

    def fit(self) -> None:
        """Take as many rows as there are lines, up to the most."""
        lines = self._laid(self.size.width, self.most)[0] if self.encoded is not None and self.size.width else []
        rows = max(1, len(lines))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def move(self, cursor: int) -> None:
        """Show the tokens around this row."""
        if cursor != self.cursor:
            self.cursor = cursor
            self.repaint()

    def on_resize(self) -> None:
        """Room for more tokens, or for fewer."""
        self.fit()
        self.refresh()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The tokens in view."""
        if self.encoded is None or not len(self.encoded):
            return []
        if self.cursor < self._first:
            self._first = max(0, self.cursor - max(1, self._after - self._first) // 2)
        lines, self._after = self._laid(width, height)
        while self.cursor >= self._after and self._first < self.cursor:  # further down, however long tokens are
            self._first = max(self._first + 1, self.cursor - max(1, (self._after - self._first) // 2))
            lines, self._after = self._laid(width, height)
        return lines

    def _laid(self, width: int, height: int) -> tuple[list[list[Span]], int]:
        assert self.encoded is not None
        return flow(self.encoded, self._first, width, height, marks_of(self.glyphs), cursor=self.cursor)
