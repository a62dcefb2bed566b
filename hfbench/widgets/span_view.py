"""Lines of styled text that scroll; they are laid out for the width there is and painted on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hfbench.widgets.cells import Span
from hfbench.widgets.help import Help
from hfbench.widgets.paint_styles import STYLE_CSS, PaintStyles
from hfbench.widgets.painted import changed_regions, strip_of, suit_scrollbar
from hfbench.widgets.unstyled_focus import UnstyledFocus

LayOut = Callable[[int], Sequence[Sequence[Span]]]
"""Lines for a width in cells."""


class SpanView(PaintStyles, UnstyledFocus, ScrollView, can_focus=True, inherit_bindings=False):
    """Text to read; left and right are left to whoever holds it."""

    help: Help = Help("Text", "`up`, `down`, `pgup`, `pgdn`, `home` and `end` scroll.")

    DEFAULT_CSS = "SpanView { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; " + STYLE_CSS + "}"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_lines(-1)", "up", show=False),
        Binding("down,j", "scroll_lines(1)", "down", show=False),
        Binding("pageup", "scroll_pages(-1)", "page up", show=False),
        Binding("pagedown,space", "scroll_pages(1)", "page down", show=False),
        Binding("home", "scroll_ends(-1)", "top", show=False),
        Binding("end", "scroll_ends(1)", "end", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lay_out: LayOut = lambda width: ()
        self._lines: Sequence[Sequence[Span]] = ()
        self._width = 0

    def show(self, lay_out: LayOut) -> None:
        """Show these lines; what was in view stays, where there are as many lines."""
        self._lay_out = lay_out
        self._laid(self._width)

    def on_mount(self) -> None:
        """Suit the terminal."""
        suit_scrollbar(self)

    def on_resize(self) -> None:
        """Lay out anew for another width."""
        if self.scrollable_content_region.width != self._width:
            self._laid(self.scrollable_content_region.width)

    def watch_show_vertical_scrollbar(self) -> None:
        """The scrollbar takes a cell, which is no resize to Textual: no text may be left below it."""
        self.call_after_refresh(self.on_resize)

    def render_line(self, y: int) -> Strip:
        """Textual's line interface."""
        row = y + self.scroll_offset.y
        return strip_of(self, self._lines[row] if row < len(self._lines) else [], self._width)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by lines."""
        self._go(self.scroll_offset.y + lines)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by pages less a line."""
        self._go(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_scroll_ends(self, end: int) -> None:
        """To the begin or the end."""
        self._go(0 if end < 0 else len(self._lines))

    def _laid(self, width: int) -> None:
        before, same_width = self._lines, width == self._width
        self._width = width
        self._lines = self._lay_out(width) if width else ()
        if self.virtual_size.height != len(self._lines):
            self.virtual_size = Size(0, len(self._lines))
        if not same_width:
            self.refresh()
            return
        top = self.scroll_offset.y
        if regions := changed_regions(before, self._lines, width):
            self.refresh(*(each.translate((0, -top)) for each in regions))

    def _go(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True)
