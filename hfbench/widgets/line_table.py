"""The base of tables: a header, lines painted on demand, and a cursor."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.cache import LRUCache
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hfbench.widgets.cells import Span, fit
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.paint_styles import STYLE_CSS, PaintStyles
from hfbench.widgets.painted import strip_of, suit_scrollbar
from hfbench.widgets.record_columns import GAP, Placed
from hfbench.widgets.unstyled_focus import UnstyledFocus

MARK = 2
"""Cells before the first column, where the cursor stands."""

Cell = tuple[str, str]
"""Text of a cell and the state that colours it."""


class LineTable(PaintStyles, UnstyledFocus, ScrollView, can_focus=True, inherit_bindings=False):
    """A list of any length with one header line; subclasses say what a row holds.

    They give `row_count`, `row_cells`, `placed`, `choose` and `empty_text`, and call `rows_changed`.
    """

    DEFAULT_CSS = "LineTable { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; " + STYLE_CSS + "}"

    BINDINGS = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "first", "first", show=False),
        Binding("end", "last", "last", show=False),
        Binding("enter", "choose", "open"),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)
    """The row the cursor is on, from 0."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._line_width: int | None = None
        self._strips: LRUCache[tuple[int, str], Strip] = LRUCache(1024)
        self._standing: dict[int, Strip] = {}
        """What stands on each line of the screen."""

    def row_count(self) -> int:
        """Rows there are to show."""
        raise NotImplementedError

    def row_cells(self, row: int) -> Sequence[Cell]:
        """The cells of a row, in the order of `placed`."""
        raise NotImplementedError

    def placed(self) -> tuple[Placed, ...]:
        """The columns that fit the present width."""
        raise NotImplementedError

    def sort_mark(self) -> tuple[str, bool] | None:
        """The key of the column the rows are ordered by, and whether descending."""
        return None

    def header_note(self) -> str:
        """What the header line says at its end, such as work under way."""
        return ""

    def choose(self, row: int) -> None:
        """`enter` was pressed on a row."""

    def empty_text(self) -> str:
        """What a table without rows says: why, and what to press."""
        return "nothing here"

    @property
    def glyphs(self) -> Glyphs:
        """The signs the application decided on."""
        return glyphs_of(self.app)

    @property
    def line_width(self) -> int:
        """Cells of a painted line: what the scrollbar leaves. Worked out once a paint, not once a line."""
        if self._line_width is None:
            self._line_width = self.scrollable_content_region.width
        return self._line_width

    @property
    def page(self) -> int:
        """Rows visible at once."""
        return max(1, self.size.height - 1)

    def rows_changed(self) -> None:
        """Rows, order or columns changed: drop painted lines, keep the cursor inside, repaint the lines that differ."""
        self._strips.clear()
        self._measure()
        self.cursor = self.validate_cursor(self.cursor)
        if not self._standing or not self.size:
            self.refresh()
            return
        self._line_width = None
        for y in range(self.size.height):
            if self._standing.get(y) != self._line(y):
                self.refresh(Region(0, y, self.size.width, 1))

    def rows_added(self) -> None:
        """Rows were added behind those there are: repaints only when there is room to show them."""
        known = self.virtual_size.height
        if known < self.scroll_offset.y + self.size.height and known != self.row_count() + 1:
            self.rows_changed()
        else:
            self._measure()

    def refresh_header(self) -> None:
        """What the header line says changed."""
        self.refresh(Region(0, 0, self.size.width, 1))

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on a row."""
        return max(0, min(cursor, self.row_count() - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        """Scroll the row into view and repaint the two lines."""
        self.show_cursor()
        for row in (before, now):
            self._refresh_row(row)

    def show_cursor(self) -> None:
        """Scroll so that the cursor's row is visible."""
        top = self.scroll_offset.y
        if not self.is_attached:
            return
        if self.cursor >= self.virtual_size.height - 1:
            self._measure()
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + self.page:
            self.scroll_to(y=self.cursor - self.page + 1, animate=False, force=True)

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        """Move the cursor by a page, one line of which stays in view."""
        self.cursor += pages * max(1, self.page - 1)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self.cursor = 0

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self.cursor = self.row_count() - 1

    def action_choose(self) -> None:
        """Open what the cursor is on."""
        if self.row_count():
            self.choose(self.cursor)

    def on_mount(self) -> None:
        """Lay out what was given before."""
        suit_scrollbar(self)
        self.rows_changed()

    def on_click(self, event: Click) -> None:
        """A click moves the cursor; a second one opens."""
        row = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and row < self.row_count():
            self.cursor = row
            if event.chain == 2:
                self.action_choose()

    def on_resize(self, event: Resize) -> None:
        """Columns depend on the width."""
        self._line_width = None
        self._strips.clear()
        self._standing.clear()
        self.show_cursor()

    def on_focus(self) -> None:
        """The cursor shows where keys go."""
        self._refresh_row(self.cursor)

    def on_blur(self) -> None:
        """The cursor shows where keys go."""
        self._refresh_row(self.cursor)

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """Textual's hook after every layout; how long the list is, the list itself says."""
        return super()._size_updated(size, self.virtual_size, container_size, layout)

    def notify_style_update(self) -> None:
        """Textual's hook: the theme changed."""
        super().notify_style_update()
        self._strips.clear()
        self._standing.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual's hook before a paint."""
        self._line_width = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Textual's line interface: the header, then rows."""
        strip = self._standing[y] = self._line(y)
        return strip

    def _line(self, y: int) -> Strip:
        width = self.line_width
        if y == 0:
            return strip_of(self, self._header(width), width)
        row = y - 1 + self.scroll_offset.y
        if row >= self.row_count():
            return self._below_rows(y, width)
        over = "" if row != self.cursor else "cursor" if self.has_focus else "cursor-blurred"
        strip = self._strips.get((row, over))
        if strip is None or strip.cell_length != width:
            strip = strip_of(self, self._row(row), width, over=over)
            self._strips[row, over] = strip
        return strip

    def _below_rows(self, y: int, width: int) -> Strip:
        if not self.row_count() and y == 2:
            return strip_of(self, [(fit(" " * MARK + self.empty_text(), width), "muted")], width)
        strip = self._strips.get((-1, ""))
        if strip is None or strip.cell_length != width:
            strip = self._strips[-1, ""] = strip_of(self, [], width)
        return strip

    def _measure(self) -> None:
        """Tell Textual how many lines there are. While a scrollbar stays, nothing but that is painted anew."""
        size = Size(0, self.row_count() + 1)
        if size == self.virtual_size:
            return
        if self.show_vertical_scrollbar and size.height > self.size.height:
            self.set_reactive(LineTable.virtual_size, size)
        else:
            self.virtual_size = size
        if self.is_attached and self.size:
            self._scroll_update(size)

    def _row(self, row: int) -> list[Span]:
        mark = self.glyphs.cursor if row == self.cursor else ""
        spans: list[Span] = [(mark.ljust(MARK), "")]
        for place, (text, state) in zip(self.placed(), self.row_cells(row), strict=False):
            spans += [(self._fitted(text, place), state), (" " * GAP, "")]
        return spans[:-1]

    def _header(self, width: int) -> list[Span]:
        sort, spans = self.sort_mark(), [" " * MARK]
        for place in self.placed():
            title = place.column.title
            if sort is not None and sort[0] == place.column.key:
                title += self.glyphs.descending if sort[1] else self.glyphs.ascending
            spans += [self._fitted(title, place), " " * GAP]
        text = "".join(spans).rstrip()
        note = self.header_note()
        if note and len(text) + len(note) + GAP <= width:
            text = fit(text, width - len(note)) + note
        return [(fit(text, width), "muted")]

    def _fitted(self, text: str, place: Placed) -> str:
        column = place.column
        return fit(
            text,
            place.width,
            right=column.align == "right",
            middle=column.middle,
            ellipsis=self.glyphs.ellipsis,
        )

    def _refresh_row(self, row: int) -> None:
        y = row - self.scroll_offset.y + 1
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))
