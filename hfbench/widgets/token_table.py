"""The tokens of a text as a table: number, id, bytes, what they stand for and how the vocabulary spells them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from textual.message import Message

from hfbench.tokens.encoded import Encoded
from hfbench.widgets.cells import width_of
from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK, Cell, LineTable
from hfbench.widgets.record_columns import Column, Placed, lay_out
from hfbench.widgets.token_lines import KINDS, marks_of, token_text, visible

NOTHING = Encoded(raw=b"", characters=0, ids=array("I"), begins=array("I"), ends=array("I"), kinds=b"", pieces={})

LOOKED_AT = 2_000
"""Pieces that are measured; a longer one among the others is cut."""

LONGEST_PIECE = 200
"""Characters painted of a piece."""


class TokenTable(LineTable):
    """One token a row, of as many as there are."""

    help = Help(
        "Tokens",
        "The number of each token, its id, the bytes of the UTF-8 text it stands for, from and up to, the text itself "
        "with white space made visible, and its piece in the vocabulary. `enter` tells all of one, `i` types text.",
    )

    columns: ClassVar[tuple[Column, ...]] = (
        Column("number", "#", align="right"),
        Column("id", "Id", align="right"),
        Column("bytes", "Bytes", align="right"),
        Column("kind", "Kind", priority=1),
        Column("text", "Text", flexible=True, min=10, max=60),
        Column("piece", "Piece", flexible=True, min=10, max=60, priority=2),
    )

    @dataclass
    class Chosen(Message):
        """`enter` on a row."""

        table: TokenTable

        @property
        def control(self) -> TokenTable:
            """The table it came from."""
            return self.table

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.encoded = NOTHING
        self.empty = ""
        self._widths: tuple[int, ...] = (1, 1, 1, 0, 60, 60)

    def show(self, encoded: Encoded) -> None:
        """Show these tokens; the cursor stays on its row."""
        self.encoded = encoded
        count = len(f"{max(0, len(encoded) - 1):,}")
        ids = len(str(max(encoded.pieces, default=0)))
        kind = max((len(name) for value, name in KINDS.items() if value in encoded.kinds), default=0)
        marks, some = marks_of(self.glyphs), islice(encoded.pieces.values(), LOOKED_AT)
        piece = max((width_of(visible(piece[:LONGEST_PIECE], marks)) for piece in some), default=0)
        self._widths = (count, ids, 2 * len(f"{len(encoded.raw):,}") + 1, kind, piece, piece)
        self.rows_changed()

    def row_count(self) -> int:
        """All tokens."""
        return len(self.encoded)

    def placed(self) -> tuple[Placed, ...]:
        """Columns for the present width."""
        return lay_out(self.columns, self._widths, self.line_width - MARK)

    def row_cells(self, row: int) -> Sequence[Cell]:
        """The cells of a row."""
        encoded, marks = self.encoded, marks_of(self.glyphs)
        number = encoded.ids[row]
        begin, end = encoded.begins[row], encoded.ends[row]
        piece = visible(encoded.pieces.get(number, "")[:LONGEST_PIECE], marks)
        kind = KINDS.get(encoded.kinds[row], "")
        cells: dict[str, Cell] = {
            "number": (f"{row:,}", "muted"),
            "id": (str(number), ""),
            "bytes": (f"{begin:,}-{end:,}", "muted"),
            "kind": (kind, "warn" if kind == "added" else "title"),
            "text": (token_text(encoded, row, marks) if end > begin else "", "title" if kind == "special" else ""),
            "piece": (piece, "muted"),
        }
        return [cells[place.column.key] for place in self.placed()]

    def choose(self, row: int) -> None:
        """Tell that all of it is wanted."""
        self.post_message(self.Chosen(self))

    def empty_text(self) -> str:
        """What to do."""
        return self.empty
