"""The cells of a sweep over two axes with a cursor: what each is doing, or any metric of them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from hfbench.widgets.cells import Span
from hfbench.widgets.heat_lines import HEADERS, HeatMap, Window, heat_lines, height_of
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.unstyled_focus import UnstyledFocus


class HeatGrid(UnstyledFocus, Painted, can_focus=True, inherit_bindings=False):
    """Paints the map it is given; the cursor stays on the sweep's cell when another map comes."""

    help = Help(
        "Map",
        "A place a cell: what it is doing, or its value with a bar for its height between the lowest and the highest. "
        "`*` marks the best one, `?` one that samples do not tell apart from others, `+` those marked with `space`. "
        "Arrows move, `enter` opens the cell's job.\n"
        "`m` chooses the metric, `a` and `d` the axes across and down, `f` and `F` walk through the values of the "
        "other axes.",
    )

    DEFAULT_CSS = "HeatGrid { height: auto; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1, 0)", "up", show=False),
        Binding("down,j", "move(1, 0)", "down", show=False),
        Binding("left", "move(0, -1)", "left", show=False),
        Binding("right", "move(0, 1)", "right", show=False),
        Binding("home", "ends(0)", "first", show=False),
        Binding("end", "ends(-1)", "last", show=False),
        Binding("enter", "choose", "open", id="sweep.open-job"),
        Binding("pageup", "scroll_below(-1)", "page up", show=False),
        Binding("pagedown", "scroll_below(1)", "page down", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another cell of the sweep; None where it has none."""

        number: int | None

    @dataclass
    class Chosen(Message):
        """`enter` on a cell."""

        number: int

    @dataclass
    class Scrolled(Message):
        """What stands below is to scroll by pages."""

        pages: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.map: HeatMap | None = None
        self.marked: Set[int] = frozenset()
        self.cursor = (0, 0)
        self.room = 0

    @property
    def current(self) -> int | None:
        """The number of the sweep's cell under the cursor."""
        cell = self.map.at(*self.cursor) if self.map else None
        return cell.number if cell else None

    def show(self, map: HeatMap, marked: Set[int], room: int) -> None:
        """Paint this in at most `room` lines."""
        known = self.current
        self.map, self.marked, self.room = map, marked, room
        place = map.place(known) if known is not None else None
        rows, columns = max(1, len(map.rows)), max(1, len(map.columns))
        self.cursor = place or (min(self.cursor[0], rows - 1), min(self.cursor[1], columns - 1))
        height = max(1, min(height_of(map), room))
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self.repaint()
        if self.current != known:
            self.post_message(self.Moved(self.current))

    def move_to(self, number: int) -> None:
        """Put the cursor on a cell of the sweep, if the map shows it."""
        if self.map and (place := self.map.place(number)):
            self._go(*place)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The map, as much of it as fits."""
        if self.map is None:
            return []
        return heat_lines(self.map, self.cursor, self.marked, width, height, focused=self.has_focus, glyphs=self.glyphs)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The cursor shows where keys go."""
        self.repaint()

    def on_click(self, event: Click) -> None:
        """A click moves the cursor; a second one opens the job."""
        if self.map is None:
            return
        view = Window.of(self.map, self.cursor, self.size.width, self.size.height)
        row, column = event.y - HEADERS + view.top, (event.x - view.label) // view.column + view.left
        if event.y >= HEADERS and event.x >= view.label and self.map.at(row, column):
            self._go(row, column)
            if event.chain == 2:
                self.action_choose()

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor; at the edge it stays."""
        row, column = self.cursor[0] + rows, self.cursor[1] + columns
        if self.map and self.map.at(row, column):
            self._go(row, column)

    def action_ends(self, end: int) -> None:
        """To the first or the last cell."""
        if self.map and self.map.rows and self.map.columns:
            self._go(0, 0) if end == 0 else self._go(len(self.map.rows) - 1, len(self.map.columns) - 1)

    def action_choose(self) -> None:
        """Tell that the cell is chosen."""
        if self.current is not None:
            self.post_message(self.Chosen(self.current))

    def action_scroll_below(self, pages: int) -> None:
        """Tell that what stands below is to scroll."""
        self.post_message(self.Scrolled(pages))

    def _go(self, row: int, column: int) -> None:
        self.cursor = row, column
        self.repaint()
        self.post_message(self.Moved(self.current))
