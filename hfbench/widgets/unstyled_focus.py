"""Widgets that take the keys without being styled and painted anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from textual.widget import Widget
else:
    Widget = object  # Textual takes CSS and focus from the first base that is a widget: the one beside this


class UnstyledFocus(Widget):
    """A widget whose looks no style rule ties to the focus; what differs, such as a cursor's line, it repaints itself.

    Textual would look up every style of the widget and of all it holds, and paint all of it, when it takes the keys
    and again when it loses them.
    """

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No style depends on it."""

    def _on_focus(self, event: events.Focus) -> None:
        event.prevent_default()
        self._keys_moved(True, events.DescendantFocus(self))

    def _on_blur(self, event: events.Blur) -> None:
        event.prevent_default()
        self._keys_moved(False, events.DescendantBlur(self))

    def _keys_moved(self, here: bool, told: events.Event) -> None:
        self.has_focus = here
        if self.parent is not None:
            self.parent.post_message(told)
