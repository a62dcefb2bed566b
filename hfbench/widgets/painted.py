"""The base of widgets that paint a few lines of spans, and repaint only what changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from hfbench.widgets.cells import Span, spans_width
from hfbench.widgets.glyphs import ASCII, Glyphs, glyphs_of
from hfbench.widgets.paint_styles import STYLE_CSS, PaintStyles


def style_of(widget: Widget, name: str) -> Style:
    """The style a span names, of the theme in force; the empty name is plain text."""
    return widget.get_component_rich_style(f"paint--{name or 'plain'}")


def strip_of(widget: Widget, spans: Sequence[Span], width: int, *, over: str = "") -> Strip:
    """One painted line of exactly `width` cells; `over` names a style, such as the cursor's, that covers all."""
    if over:
        line = Strip([Segment("".join(text for text, _ in spans), style_of(widget, over))])
        return line.adjust_cell_length(width, style_of(widget, over))
    padded = [*spans, (" " * (width - spans_width(spans)), "")]
    joined = [("".join(text for text, _ in run), name) for name, run in groupby(padded, key=itemgetter(1))]
    strip = Strip([Segment(text, style_of(widget, name)) for text, name in joined if text])
    return strip.adjust_cell_length(width, style_of(widget, ""))


def changed_regions(before: Sequence[Sequence[Span]], now: Sequence[Sequence[Span]], width: int) -> list[Region]:
    """What to paint anew: of each line that differs, all up to its last change.

    Textual writes a line of a widget from its left edge whatever region was asked for, and once for each region.
    """
    regions = []
    for y in range(max(len(before), len(now))):
        old, new = (lines[y] if y < len(lines) else () for lines in (before, now))
        if old != new:
            regions.append(Region(0, y, _last_change(_cells(old, width), _cells(new, width), width), 1))
    return regions


def _cells(spans: Sequence[Span], width: int) -> list[tuple[str, str]] | None:
    """A line cell by cell; None where a sign takes more or less than one."""
    cells: list[tuple[str, str]] = []
    for text, style in spans:
        if spans_width([(text, style)]) != len(text):
            return None
        cells += [(sign, style) for sign in text]
    return [*cells, *[(" ", "")] * (width - len(cells))][:width]


def _last_change(before: list[tuple[str, str]] | None, now: list[tuple[str, str]] | None, width: int) -> int:
    """The cell behind the last one that differs."""
    if before is None or now is None:
        return width
    return next((x + 1 for x in range(width - 1, -1, -1) if before[x] != now[x]), 1)


class PlainScrollBar(ScrollBarRender):
    """A scrollbar without part blocks, for terminals that show ASCII only."""

    VERTICAL_BARS = [" "] * 8
    HORIZONTAL_BARS = [" "] * 8


def suit_scrollbar(widget: Widget) -> None:
    """Give a scrolling widget the scrollbar that its terminal can show."""
    if glyphs_of(widget.app) == ASCII:
        setattr(widget.vertical_scrollbar, "renderer", PlainScrollBar)  # noqa: B010 - declared for the class only


class Painted(PaintStyles, Widget):
    """A widget of a few lines, one unless CSS gives it more.

    Subclasses give `lines`, and call `repaint` when their data changed.
    """

    DEFAULT_CSS = "Painted { height: 1; " + STYLE_CSS + "}"

    _painted: list[list[Span]] | None = None
    _laid_out_for: Size | None = None
    """What the lines were laid out for: a widget may be painted at its new size before it hears of that."""

    @property
    def glyphs(self) -> Glyphs:
        """The signs the application decided on."""
        return glyphs_of(self.app)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The lines to paint in `width` by `height` cells."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Paint what changed since the last time."""
        if not self.is_mounted or not self.size:
            return
        before = self._painted if self._laid_out_for == self.size else None
        self._painted = None
        if before is None:  # laid out anew: what stands on the screen is not known
            self.refresh()
        elif regions := changed_regions(before, self._current(), self.size.width):
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """Textual's line interface."""
        lines = self._current()
        spans = lines[y] if y < len(lines) else []
        return strip_of(self, spans, self.size.width)

    def notify_style_update(self) -> None:
        """Textual's hook: the theme changed."""
        super().notify_style_update()
        self._painted = None

    def on_resize(self) -> None:
        """Lay the lines out anew."""
        self._painted = None

    def _current(self) -> list[list[Span]]:
        if self._painted is None or self._laid_out_for != self.size:
            self._laid_out_for = self.size
            self._painted = self.lines(self.size.width, self.size.height)
        return self._painted
