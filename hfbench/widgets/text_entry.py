"""An entry for text of several lines: what is typed is text, whatever the key means elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click, Key, Paste
from textual.geometry import Size
from textual.keys import KEY_NAME_REPLACEMENTS
from textual.message import Message
from textual.widget import Widget

from hfbench.text import printable
from hfbench.widgets.cells import Span, fit, width_of
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.text_buffer import TextBuffer
from hfbench.widgets.unstyled_focus import UnstyledFocus

NAMED = frozenset(KEY_NAME_REPLACEMENTS.values())
"""Keys with a character that Textual calls by a name of its own, such as `slash`."""

MOST_ROWS = 3
"""Rows of the entry; further lines scroll."""


class TextEntry(UnstyledFocus, Painted, can_focus=True):
    """Text that is edited as a whole. Posts `Changed` with each key, and `Left` when the keys go to `back`.

    `back` selects the widget beside it that gets the keys then.
    """

    help = Help(
        "Text",
        "What you type or paste is text. `enter` begins a line, `ctrl+w` takes a word away, `ctrl+u` the line before "
        "the cursor, `ctrl+z` takes a change back. `escape` leaves, so that single keys work; so does `down` on the "
        "last line.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave text"),
        Binding("enter", "newline", "new line", show=False),
        Binding("left", "move(-1)", "left", show=False),
        Binding("right", "move(1)", "right", show=False),
        Binding("ctrl+left", "move_word(-1)", "word left", show=False),
        Binding("ctrl+right", "move_word(1)", "word right", show=False),
        Binding("home,ctrl+a", "move_end(-1)", "begin of line", show=False),
        Binding("end,ctrl+e", "move_end(1)", "end of line", show=False),
        Binding("up", "move_line(-1)", "line above", show=False),
        Binding("down", "move_line(1)", "line below", show=False),
        Binding("backspace", "delete(-1)", "delete", show=False),
        Binding("delete,ctrl+d", "delete(1)", "delete forward", show=False),
        Binding("ctrl+w", "delete_word", "delete word"),
        Binding("ctrl+u", "delete_line(-1)", "delete line"),
        Binding("ctrl+k", "delete_line(1)", "delete to end of line", show=False),
        Binding("ctrl+z", "undo", "undo"),
    ]

    DEFAULT_CSS = "TextEntry { height: 1; background: $panel; }"

    types_text: ClassVar[bool] = True
    """Letters are text here: the key line names none of them."""

    @dataclass
    class Changed(Message):
        """The text changed."""

        entry: TextEntry

        @property
        def control(self) -> TextEntry:
            """The entry it came from."""
            return self.entry

        def can_replace(self, message: Message) -> bool:
            """Only the latest text matters, and the entry holds it."""
            return isinstance(message, TextEntry.Changed) and message.entry is self.entry

    @dataclass
    class Left(Message):
        """The user is done with it."""

        entry: TextEntry

        @property
        def control(self) -> TextEntry:
            """The entry it came from."""
            return self.entry

    def __init__(self, *, back: str, hint: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.buffer, self.back, self.hint = TextBuffer(), back, hint
        self._top = self._left = 0

    @property
    def text(self) -> str:
        """What was typed."""
        return self.buffer.text

    def show(self, text: str) -> None:
        """Hold another text, the cursor at its end."""
        self.buffer.set(text)
        self._left = 0
        self._repaint()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Textual's question: is the key text? It gives no character for some that it names itself."""
        return key in NAMED or (character is not None and character.isprintable())

    def on_key(self, event: Key) -> None:
        """Printable keys are text."""
        if event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self.buffer.insert(event.character)
            self._changed()

    def on_paste(self, event: Paste) -> None:
        """All lines of what is pasted are text."""
        event.stop()
        self.buffer.insert(event.text)
        self._changed()

    def on_click(self, event: Click) -> None:
        """A click moves the cursor."""
        row = min(self._top + event.y, len(self.buffer.lines) - 1)
        line, column = self.buffer.lines[row], self._left
        while column < len(line) and width_of(printable(line[self._left : column + 1])) <= event.x:
            column += 1
        self.buffer.row, self.buffer.column = row, column
        self._repaint()

    def action_leave(self) -> None:
        """Give the keys away at once: the next one is already on its way."""
        if isinstance(self.parent, Widget):
            self.screen.set_focus(self.parent.query_one(self.back))
        self.post_message(self.Left(self))

    def action_newline(self) -> None:
        """Begin a line."""
        self.buffer.insert("\n")
        self._changed()

    def action_move(self, step: int) -> None:
        """A character on or back."""
        self.buffer.move(step)
        self._repaint()

    def action_move_word(self, step: int) -> None:
        """A word on or back."""
        self.buffer.move(step, word=True)
        self._repaint()

    def action_move_end(self, step: int) -> None:
        """To an end of the line."""
        self.buffer.move_end(step)
        self._repaint()

    def action_move_line(self, step: int) -> None:
        """A line up or down; down on the last line leaves."""
        if self.buffer.move_line(step):
            self._repaint()
        elif step > 0:
            self.action_leave()

    def action_delete(self, step: int) -> None:
        """Delete a character."""
        self.buffer.delete(step)
        self._changed()

    def action_delete_word(self) -> None:
        """Delete the word before the cursor."""
        self.buffer.delete(-1, word=True)
        self._changed()

    def action_delete_line(self, step: int) -> None:
        """Delete a part of the line."""
        self.buffer.delete_line(step)
        self._changed()

    def action_undo(self) -> None:
        """Take back the last change."""
        if self.buffer.undo():
            self._changed()

    def on_focus(self) -> None:
        """The cursor shows where keys go."""
        self._lay_out_anew()

    def on_blur(self) -> None:
        """The cursor shows where keys go."""
        self._lay_out_anew()

    def on_resize(self) -> None:
        """More or fewer rows."""
        self._lay_out_anew()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as lines, up to a few."""
        return min(MOST_ROWS, len(self.buffer.lines))

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The rows around the cursor."""
        buffer = self.buffer
        self._follow(width, height)
        if not buffer.size and not self.has_focus:
            return [[(fit(self.hint, width, ellipsis=self.glyphs.ellipsis), "muted")]]
        return [self._row(row, width) for row in range(self._top, min(self._top + height, len(buffer.lines)))]

    def _row(self, row: int, width: int) -> list[Span]:
        line = self.buffer.lines[row][self._left : self._left + 4 * width]
        if row != self.buffer.row or not self.has_focus:
            return [(fit(printable(line), width, ellipsis=""), "")]
        at = self.buffer.column - self._left
        under = printable(line[at : at + 1]) or " "
        before, after = printable(line[:at]), printable(line[at + 1 :])
        room = max(0, width - width_of(before) - width_of(under))
        return [(before, ""), (under, "cursor"), (fit(after, room, ellipsis=""), "")]

    def _follow(self, width: int, height: int) -> None:
        """Scroll so that the cursor is in view."""
        row, column = self.buffer.row, self.buffer.column
        self._top = max(0, min(self._top, row, len(self.buffer.lines) - height), row - height + 1)
        line = self.buffer.lines[row]
        if column < self._left:
            self._left = max(0, column - width // 2)
        shown = line[max(self._left, column - width) : column + 1]
        if column - self._left >= width or width_of(printable(shown)) > width:
            self._left = _first_in_view(line, column, width)

    def _lay_out_anew(self) -> None:
        """Once this event is over: Textual tells it before the widget has its size and its focus."""
        self._painted = None
        self.refresh()

    def _changed(self) -> None:
        self._repaint()
        self.post_message(self.Changed(self))

    def _repaint(self) -> None:
        rows = min(MOST_ROWS, len(self.buffer.lines))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows
        self.repaint()


def _first_in_view(line: str, column: int, width: int) -> int:
    """The first character from which on the cursor is two thirds across."""
    first, used = column, 1
    while first > 0 and used < max(1, 2 * width // 3):
        first -= 1
        used += width_of(printable(line[first]))
    return first
