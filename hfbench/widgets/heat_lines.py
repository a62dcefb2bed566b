"""A metric over two axes as painted lines: a number and its height in each cell, or the word of what it is doing."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from hfbench.jobs.doubt import SIGN
from hfbench.text import printable
from hfbench.widgets.cells import Span, clip, clip_middle, fit, width_of
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_rows import MARK

WIDEST_LABEL = 24
"""Cells of a row's or a column's label at most."""
GAP = 1
MARKS = 2
"""Cells before the text of a cell: the cursor's sign, then that of the best one or of a mark."""
BEST = "*"
"""Sign of the best cell; `?` behind its number says that samples do not tell it apart from the others."""
HEADERS = 2
"""Lines above the cells: the title and the columns' values."""
BARS = (3, 1)
"""Cells of a bar: the wider one where every column can be seen with it."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One place. `number` is that of the sweep's cell, None where the sweep has none; `level` is 1 to 8, 0 for none."""

    number: int | None
    text: str
    state: State = ""
    level: int = 0
    best: bool = False
    undecided: bool = False
    """Of the best one: whether samples may as well put another in front of it."""
    doubt: bool = False
    """Whether anything speaks against the number."""

    @property
    def told(self) -> str:
        """The text with its sign of doubt."""
        return self.text + (SIGN if self.doubt or (self.best and self.undecided) else "")


@dataclass(frozen=True, slots=True)
class HeatMap:
    """What is painted: `cells[row][column]`, with the texts of both axes' values."""

    title: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[HeatCell, ...], ...]

    def at(self, row: int, column: int) -> HeatCell | None:
        """The cell of a place; None outside."""
        if 0 <= row < len(self.cells) and 0 <= column < len(self.cells[row]):
            return self.cells[row][column]
        return None

    def place(self, number: int) -> tuple[int, int] | None:
        """Where a cell of the sweep stands."""
        for y, row in enumerate(self.cells):
            for x, cell in enumerate(row):
                if cell.number == number:
                    return y, x
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a map that is in view: a page of columns and one of rows, so that moving within it shifts nothing."""

    label: int
    room: int
    """Cells of a value with its bar, or of a word."""
    bar: int
    """Cells of a bar."""
    left: int
    columns: int
    top: int
    rows: int
    signed: bool = False
    """Whether any number has a sign of doubt: the others keep its place free."""

    @classmethod
    def of(cls, map: HeatMap, cursor: tuple[int, int], width: int, height: int) -> Window:
        """The page the cursor is on; a map that fits is one page."""
        label = min(WIDEST_LABEL, max(map_width(map.rows), width_of(_corner(map)))) + GAP
        rows = max(1, min(len(map.rows), height - HEADERS))
        row, at = cursor
        shown = [cell for line in map.cells for cell in line]
        signed = any(cell.told != cell.text for cell in shown)
        for bar in BARS:
            cells = (width_of(cell.text) + 1 + bar + signed if cell.level else width_of(cell.told) for cell in shown)
            room = max(max(cells, default=0), min(WIDEST_LABEL, map_width(map.columns)))
            columns = max(1, min(len(map.columns), (width - label) // (MARKS + room + GAP)))
            if columns == len(map.columns):
                break
        return cls(label, room, bar, at // columns * columns, columns, row // rows * rows, rows, signed)

    @property
    def column(self) -> int:
        """Cells from one column to the next."""
        return MARKS + self.room + GAP


def map_width(texts: tuple[str, ...]) -> int:
    """Cells of the widest text."""
    return max(map(width_of, texts), default=0)


def height_of(map: HeatMap) -> int:
    """Lines of the whole map."""
    return HEADERS + len(map.rows)


def heat_lines(
    map: HeatMap,
    cursor: tuple[int, int],
    marked: Set[int],
    width: int,
    height: int,
    *,
    focused: bool,
    glyphs: Glyphs,
) -> list[list[Span]]:
    """The title, the columns' values, and a line a row; a map that does not fit is shown a page at a time."""
    if not map.columns or not map.rows:
        return []
    view = Window.of(map, cursor, width, height)
    shown = range(view.left, min(len(map.columns), view.left + view.columns))
    lines: list[list[Span]] = [_title(map, view, width, glyphs)]
    heads = "".join(" " * MARKS + _head(map.columns[at], view, glyphs) for at in shown)
    corner = fit(_corner(map), view.label - GAP, ellipsis=glyphs.ellipsis) + " " * GAP
    lines.append([(corner + heads.rstrip(), "muted")])
    for row in range(view.top, min(len(map.rows), view.top + view.rows)):
        label = fit(printable(map.rows[row]), view.label - GAP, right=True, ellipsis=glyphs.ellipsis)
        spans: list[Span] = [(label + " " * GAP, "muted")]
        for at in shown:
            spans += _cell(map.cells[row][at], (row, at) == cursor, marked, view, focused=focused, glyphs=glyphs)
        lines.append(spans)
    return lines


def _corner(map: HeatMap) -> str:
    """The names of both axes, as a table's corner tells them."""
    return printable(" \\ ".join(filter(None, (map.y, map.x))))


def _head(text: str, view: Window, glyphs: Glyphs) -> str:
    text = clip_middle(printable(text), view.room, ellipsis=glyphs.ellipsis)
    return fit(text, view.room, right=True) + " " * GAP


def _title(map: HeatMap, view: Window, width: int, glyphs: Glyphs) -> list[Span]:
    parts = []
    if view.columns < len(map.columns):
        last = min(len(map.columns), view.left + view.columns)
        parts.append(f"columns {view.left + 1}-{last} of {len(map.columns)}")
    if view.rows < len(map.rows):
        parts.append(f"rows {view.top + 1}-{min(len(map.rows), view.top + view.rows)} of {len(map.rows)}")
    page = clip(", ".join(parts), width, ellipsis=glyphs.ellipsis)
    room = width - (width_of(page) + 2 if page else 0)
    title = clip(printable(map.title), max(1, room), ellipsis=glyphs.ellipsis)
    return [(title, "muted"), (page.rjust(max(0, width - width_of(title))) if page else "", "warn" if page else "")]


def _cell(cell: HeatCell, here: bool, marked: Set[int], view: Window, *, focused: bool, glyphs: Glyphs) -> list[Span]:
    sign = MARK if cell.number in marked else BEST if cell.best else " "
    level = f" {glyphs.levels[cell.level] * view.bar}" if cell.level else ""
    told = f"{cell.text} " if view.signed and cell.level and cell.told == cell.text else cell.told
    text = clip(told, view.room - width_of(level), ellipsis=glyphs.ellipsis)
    lead = " " * (view.room - width_of(text) - width_of(level)) + (glyphs.cursor if here else " ") + sign
    if here:
        return [(f"{lead}{text}{level}", "cursor" if focused else "cursor-blurred"), (" " * GAP, "")]
    style = "ok" if cell.best and not cell.undecided and not cell.doubt else cell.state
    return [(lead, "title"), (text, style), (level, "accent"), (" " * GAP, "")]
