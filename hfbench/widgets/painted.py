"""The base of widgets that paint a few lines of spans, and repaint only lines that changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from hfbench.widgets.cells import Span, spans_width
from hfbench.widgets.glyphs import ASCII, Glyphs, glyphs_of

STYLE_NAMES = ("plain", "title", "muted", "ok", "warn", "error", "unknown", "key", "cursor", "cursor-blurred", "accent")

STYLE_CLASSES = {f"paint--{name}" for name in STYLE_NAMES}

STYLE_CSS = """
    & > .paint--plain { color: $foreground; }
    & > .paint--title { color: $foreground; text-style: bold; }
    & > .paint--muted { color: $text-muted; }
    & > .paint--ok { color: $text-success; }
    & > .paint--warn { color: $text-warning; }
    & > .paint--error { color: $text-error; text-style: bold; }
    & > .paint--unknown { color: $text-muted; text-style: italic; }
    & > .paint--key { color: $text-accent; }
    & > .paint--accent { color: $text-accent; }
    & > .paint--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;
    }
    & > .paint--cursor-blurred {
        color: $block-cursor-blurred-foreground; background: $block-cursor-blurred-background;
        text-style: $block-cursor-blurred-text-style;
    }
"""
"""Rules for a DEFAULT_CSS; only theme variables, so that a theme decides every colour."""


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


class PlainScrollBar(ScrollBarRender):
    """A scrollbar without part blocks, for terminals that show ASCII only."""

    VERTICAL_BARS = [" "] * 8
    HORIZONTAL_BARS = [" "] * 8


def suit_scrollbar(widget: Widget) -> None:
    """Give a scrolling widget the scrollbar that its terminal can show."""
    if glyphs_of(widget.app) == ASCII:
        setattr(widget.vertical_scrollbar, "renderer", PlainScrollBar)  # noqa: B010 - declared for the class only


class Painted(Widget):
    """A widget of a few lines, one unless CSS gives it more.

    Subclasses give `lines`, and call `repaint` when their data changed.
    """

    COMPONENT_CLASSES = STYLE_CLASSES

    DEFAULT_CSS = "Painted { height: 1; " + STYLE_CSS + "}"

    _painted: list[list[Span]] | None = None

    @property
    def glyphs(self) -> Glyphs:
        """The signs the application decided on."""
        return glyphs_of(self.app)

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The lines to paint in `width` by `height` cells."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Paint the lines that changed since the last time."""
        if not self.is_mounted or not self.size:
            return
        before, self._painted = self._painted or [], None
        now = self._current()
        for y in range(max(len(before), len(now))):
            if before[y : y + 1] != now[y : y + 1]:
                self.refresh(Region(0, y, self.size.width, 1))

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
        if self._painted is None:
            self._painted = self.lines(self.size.width, self.size.height)
        return self._painted
