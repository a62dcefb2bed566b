"""The messages of a conversation, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.geometry import Size

from hfbench.text import printable
from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK, Cell, LineTable
from hfbench.widgets.record_columns import Column, Placed, lay_out

LONGEST = 300
"""Characters painted of a message."""


@dataclass(frozen=True, slots=True)
class Written:
    """A message as a user writes it."""

    role: str
    text: str


class MessageTable(LineTable):
    """Who says what. Whoever owns it says in `choose` what `enter` does."""

    help = Help(
        "Messages",
        "`enter` edits what is said, `space` changes who says it, `n` adds a message. One without text is left out.\n"
        "`m` goes from the sample to your own messages and back, `g` and `x` change the generation prompt and tools.",
    )

    columns: ClassVar[tuple[Column, ...]] = (
        Column("role", "Role", min=9),
        Column("text", "Message", flexible=True, min=20, max=400),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.messages: tuple[Written, ...] = ()

    def show(self, messages: Sequence[Written]) -> None:
        """Show these; the cursor stays on its row."""
        rows, self.messages = len(self.messages), tuple(messages)
        self.rows_changed()
        if rows != len(self.messages):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A header and a line a message."""
        return 1 + max(1, len(self.messages))

    def row_count(self) -> int:
        """All messages."""
        return len(self.messages)

    def placed(self) -> tuple[Placed, ...]:
        """Columns for the present width."""
        return lay_out(self.columns, (9, 400), self.line_width - MARK)

    def row_cells(self, row: int) -> Sequence[Cell]:
        """Role and text; the ends of lines are spelled out."""
        message = self.messages[row]
        text = printable(message.text[:LONGEST])
        return [(message.role, ""), (text, "") if text else ("left out: it says nothing", "muted")]
