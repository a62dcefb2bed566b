"""The text of an entry as lines, its cursor, and what keys do to both; a megabyte is edited as fast as a word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.cells import cell_len

MOST_CHARACTERS = 4 * 2**20
"""Characters an entry holds; what goes beyond is left out, and `full` says so."""

MOST_KEPT = 16 * 2**20
"""Characters kept for undoing."""

_WORD = re.compile(r"\S+\s*$|\s+$")
_NEXT_WORD = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True)
class _Before:
    lines: list[str]
    row: int
    column: int


class TextBuffer:
    """Lines without their ends, at least one. `row` and `column` are where the cursor stands, from 0."""

    def __init__(self, text: str = "") -> None:
        self.lines: list[str] = [""]
        self.row = self.column = 0
        self.full = False
        """Whether something was left out, for want of room."""
        self._size = 0
        self._undo: list[_Before] = []
        self._typing = False
        self.set(text)

    @property
    def text(self) -> str:
        """All of it, lines joined by line feeds."""
        return "\n".join(self.lines)

    @property
    def size(self) -> int:
        """Characters of the text."""
        return self._size

    def set(self, text: str) -> None:
        """Hold another text, the cursor at its end; there is nothing to undo."""
        kept = _ends_unified(text)[:MOST_CHARACTERS]
        self.full, self._size = len(kept) < len(text) and len(text) > MOST_CHARACTERS, len(kept)
        self.lines = kept.split("\n")
        self.row, self.column = len(self.lines) - 1, len(self.lines[-1])
        self._undo.clear()
        self._typing = False

    def insert(self, text: str) -> None:
        """Put a text where the cursor stands; line ends of any kind begin a new line."""
        text = _ends_unified(text)
        room = MOST_CHARACTERS - self._size
        self.full = len(text) > room
        text = text[:room]
        if not text:
            return
        self._remember(typing=len(text) == 1)
        line = self.lines[self.row]
        first, *more = text.split("\n")
        head, tail = line[: self.column] + first, line[self.column :]
        if more:
            self.lines[self.row : self.row + 1] = [head, *more[:-1], more[-1] + tail]
            self.row, self.column = self.row + len(more), len(more[-1])
        else:
            self.lines[self.row], self.column = head + tail, len(head)
        self._size += len(text)

    def delete(self, step: int, *, word: bool = False) -> None:
        """Take away the character or the word before (-1) or behind (1) the cursor, a line end included."""
        begin = (self.row, self.column)
        end = self._moved(step, word=word)
        self._cut(*sorted((begin, end)))

    def delete_line(self, step: int) -> None:
        """Take away the line before (-1) or behind (1) the cursor."""
        column = 0 if step < 0 else len(self.lines[self.row])
        self._cut(*sorted(((self.row, self.column), (self.row, column))))

    def move(self, step: int, *, word: bool = False) -> None:
        """Move the cursor by a character or a word, over line ends too."""
        self.row, self.column = self._moved(step, word=word)
        self._typing = False

    def move_line(self, step: int) -> bool:
        """Move the cursor by lines; False when there is none there."""
        row = self.row + step
        if not 0 <= row < len(self.lines):
            return False
        self.row, self.column = row, min(self.column, len(self.lines[row]))
        self._typing = False
        return True

    def move_end(self, step: int) -> None:
        """Move the cursor to the begin (-1) or the end (1) of its line."""
        self.column = 0 if step < 0 else len(self.lines[self.row])
        self._typing = False

    def undo(self) -> bool:
        """Take back the last change; False when there is none."""
        if not self._undo:
            return False
        before = self._undo.pop()
        self.lines, self.row, self.column = before.lines, before.row, before.column
        self._size = sum(map(len, self.lines)) + len(self.lines) - 1
        self._typing = self.full = False
        return True

    def _moved(self, step: int, *, word: bool) -> tuple[int, int]:
        line = self.lines[self.row]
        if step < 0:
            if self.column == 0:
                return (self.row - 1, len(self.lines[self.row - 1])) if self.row else (0, 0)
            if word and (found := _WORD.search(line[max(0, self.column - 1000) : self.column])):
                return self.row, self.column - len(found[0])
            column = self.column - 1
            while column > 0 and not cell_len(line[column]):  # a combining character belongs to the one before
                column -= 1
            return self.row, column
        if self.column == len(line):
            return (self.row + 1, 0) if self.row + 1 < len(self.lines) else (self.row, self.column)
        if word and (found := _NEXT_WORD.match(line, self.column, self.column + 1000)):
            return self.row, found.end()
        column = self.column + 1
        while column < len(line) and not cell_len(line[column]):
            column += 1
        return self.row, column

    def _cut(self, begin: tuple[int, int], end: tuple[int, int]) -> None:
        if begin == end:
            return
        self._remember(typing=False)
        (row, column), (last, after) = begin, end
        gone = after - column if row == last else self._length(begin, end)
        self.lines[row : last + 1] = [self.lines[row][:column] + self.lines[last][after:]]
        self.row, self.column = row, column
        self._size -= gone
        self.full = False

    def _length(self, begin: tuple[int, int], end: tuple[int, int]) -> int:
        (row, column), (last, after) = begin, end
        between = sum(len(line) + 1 for line in self.lines[row:last])
        return between - column + after

    def _remember(self, *, typing: bool) -> None:
        """Keep the state before a change; characters typed in a row are one change."""
        if typing and self._typing:
            return
        self._typing = typing
        self._undo.append(_Before(list(self.lines), self.row, self.column))
        kept = max(2, MOST_KEPT // max(self._size, 2**14))
        del self._undo[:-kept]


def _ends_unified(text: str) -> str:
    """Terminals paste a carriage return for each end of a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
