"""The last lines of a log, painted on demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from textual.binding import Binding
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hfbench.text import printable
from hfbench.widgets.cells import fit
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.paint_styles import STYLE_CSS, PaintStyles
from hfbench.widgets.painted import strip_of, suit_scrollbar

LONGEST = 2_000
"""Characters kept of one line; a progress bar without line ends must not fill the memory."""


class LogView(PaintStyles, ScrollView, can_focus=True, inherit_bindings=False):
    """Follows the end until it is scrolled up; `end` follows again. Control characters are spelled out."""

    help = Help(
        "Log",
        "The last lines the job wrote. `up`, `pgup` and `home` go back, and the view then stays where it is; "
        "`end` follows the end again.",
    )

    DEFAULT_CSS = "LogView { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; " + STYLE_CSS + "}"

    BINDINGS = [
        Binding("up,k", "scroll_by(-1)", "up", show=False),
        Binding("down,j", "scroll_by(1)", "down", show=False),
        Binding("pageup", "scroll_pages(-1)", "page up", show=False),
        Binding("pagedown", "scroll_pages(1)", "page down", show=False),
        Binding("home", "first", "first", show=False),
        Binding("end", "last", "follow", show=False),
    ]

    def __init__(self, *, limit: int = 10_000, empty: str = "no output yet", id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty = empty
        self.follow = True
        self._from_top = False
        self._lines: deque[str] = deque(maxlen=limit)

    def show(self, lines: Iterable[str], *, from_top: bool = False) -> None:
        """Show these lines instead; `from_top` begins with the first and stays there, whatever the size becomes."""
        self._lines.clear()
        self._from_top = from_top
        self.follow = not from_top
        self.extend(lines)
        if from_top:
            self.scroll_to(y=0, animate=False, force=True)

    def extend(self, lines: Iterable[str]) -> None:
        """Add lines at the end; the oldest beyond the limit are let go."""
        before = len(self._lines)
        added = [_clean(line) for line in lines]
        self._lines.extend(added)
        lost = before + len(added) - len(self._lines)
        self.virtual_size = Size(0, len(self._lines))
        if not self.is_attached:
            return
        if self.follow:
            self.scroll_to(y=len(self._lines), animate=False, force=True)
        elif lost:  # keep the same lines in view
            self.scroll_to(y=max(0, self.scroll_offset.y - lost), animate=False, force=True)
        self.refresh()

    def clear(self) -> None:
        """Forget all lines."""
        self.show(())

    def action_scroll_by(self, lines: int) -> None:
        """Scroll by lines."""
        self._go(self.scroll_offset.y + lines)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by pages less a line."""
        self._go(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """The oldest line."""
        self._go(0)

    def action_last(self) -> None:
        """The newest line, and those to come."""
        self._go(len(self._lines))

    def on_mount(self) -> None:
        """Suit the terminal."""
        suit_scrollbar(self)

    def on_resize(self) -> None:
        """Keep the end in view while following."""
        if self.follow:
            self.scroll_to(y=len(self._lines), animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow again once the end is in view, however it was reached."""
        super().watch_scroll_y(old_value, new_value)
        self.follow = not self._from_top and round(new_value) + self.size.height >= len(self._lines)

    def render_line(self, y: int) -> Strip:
        """Textual's line interface."""
        width, row = self.scrollable_content_region.width, y + self.scroll_offset.y
        if not self._lines:
            return strip_of(self, [(self.empty if y == 0 else "", "muted")], width)
        if row >= len(self._lines):
            return strip_of(self, [], width)
        text = fit(self._lines[row], width, ellipsis=glyphs_of(self.app).ellipsis)
        return strip_of(self, [(text, "")], width)

    def tail(self, count: int) -> list[str]:
        """The last lines, oldest first."""
        return list(islice(self._lines, max(0, len(self._lines) - count), None))

    def _go(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True)


def _clean(line: str) -> str:
    """A line as it is painted; of one overwritten with carriage returns, what would be left to see."""
    shown = line.rstrip("\r\n")
    last = shown.rsplit("\r", 1)[-1]
    return printable(last[:LONGEST].expandtabs(4))
