"""The styles that spans name: rules over theme variables, looked up when a widget first paints with one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.css.styles import RenderStyles
from textual.dom import DOMNode

if TYPE_CHECKING:
    from textual.widget import Widget
else:
    Widget = object  # Textual takes CSS and focus from the first base that is a widget: the one beside this

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


class PaintStyles(Widget):
    """A widget with the styles of STYLE_CSS, which stand in its DEFAULT_CSS.

    As COMPONENT_CLASSES Textual would look all of them up whenever it styles the widget, which took a quarter of the
    time to open a screen; most widgets paint with two or three.
    """

    _paint_styles: dict[str, RenderStyles] | None = None

    def get_component_styles(self, *names: str) -> RenderStyles:
        """Textual's hook: the styles of one of ours, or of components of Textual's own."""
        (name, *others) = names
        if others or name not in STYLE_CLASSES:
            return super().get_component_styles(*names)
        known = self._paint_styles = self._paint_styles or {}
        if name not in known:
            known[name] = self._look_up(name)
        return known[name]

    def notify_style_update(self) -> None:
        """Textual's hook: other rules may apply now, as after a change of theme."""
        super().notify_style_update()
        before, self._paint_styles = self._paint_styles or {}, None
        if any(self.get_component_styles(name) != styles for name, styles in before.items()):
            self.refresh()

    def _look_up(self, name: str) -> RenderStyles:
        """What the rules say for a child of that class."""
        child = DOMNode(classes=name)
        child._attach(self)
        self.app.stylesheet.apply(child)
        return child.styles
