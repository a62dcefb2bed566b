"""The grid of contexts and batches with its cursor, below the keys that turn everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from hfbench.actions.fit_text import COLUMN, FIRST_COLUMN
from hfbench.estimate.facts import FitReport
from hfbench.widgets.cells import Span
from hfbench.widgets.fit_lines import Knob, grid_spans, knob_lines
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.unstyled_focus import UnstyledFocus

HEADERS = 2
"""Lines of the grid above its cells."""


class FitGrid(UnstyledFocus, Painted, can_focus=True, inherit_bindings=False):
    """Paints what it is given and says which key was pressed; what that means is decided by who holds it."""

    help = Help(
        "Fit",
        "A cell is the memory of the fullest GPU in GiB; x names the term that does not fit, ! a context beyond the "
        "model's limit. Arrows move the cell, past the edge they go on. Small letters turn what stands beside them, "
        "capital ones turn it back. `enter` tells by which formula each term is counted, `y` copies the command.",
    )

    DEFAULT_CSS = "FitGrid { height: auto; margin-bottom: 1; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", "shorter context", show=False),
        Binding("down", "move(1, 0)", "longer context", show=False),
        Binding("left", "move(0, -1)", "smaller batch", show=False),
        Binding("right", "move(0, 1)", "larger batch", show=False),
        Binding("enter", "explain", "formulas", id="fit.formulas"),
        Binding("d", "turn('dtype', 1)", "dtype", show=False, id="fit.dtype"),
        Binding("D", "turn('dtype', -1)", "dtype back", show=False, id="fit.dtype-back"),
        Binding("k", "turn('kv_dtype', 1)", "kv dtype", show=False, id="fit.kv-dtype"),
        Binding("K", "turn('kv_dtype', -1)", "kv dtype back", show=False, id="fit.kv-dtype-back"),
        Binding("t", "turn('tp', 1)", "tensor ranks", show=False, id="fit.tp"),
        Binding("T", "turn('tp', -1)", "tensor ranks back", show=False, id="fit.tp-back"),
        Binding("p", "turn('pp', 1)", "stages", show=False, id="fit.pp"),
        Binding("P", "turn('pp', -1)", "stages back", show=False, id="fit.pp-back"),
        Binding("e", "turn('ep', 1)", "expert ranks", show=False, id="fit.ep"),
        Binding("E", "turn('ep', -1)", "expert ranks back", show=False, id="fit.ep-back"),
        Binding("r", "turn('runtime', 1)", "runtime", show=False, id="fit.runtime"),
        Binding("R", "turn('runtime', -1)", "runtime back", show=False, id="fit.runtime-back"),
        Binding("g", "turn('gpu', 1)", "GPU", show=False, id="fit.gpu"),
        Binding("G", "turn('gpu', -1)", "GPU back", show=False, id="fit.gpu-back"),
        Binding("pageup", "scroll_below(-1)", "page up", show=False),
        Binding("pagedown", "scroll_below(1)", "page down", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is to go so many rows and columns further."""

        rows: int
        columns: int

    @dataclass
    class Turned(Message):
        """A field is to take its next choice, or the one before."""

        name: str
        steps: int

    @dataclass
    class Scrolled(Message):
        """What stands below is to scroll by pages."""

        pages: int

    class Explained(Message):
        """`enter`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.knobs: tuple[Knob, ...] = ()
        self.result: FitReport | None = None
        self.cell: tuple[int | None, int] = (None, 1)
        self.stale = False

    def show(
        self, knobs: Sequence[Knob], result: FitReport | None, cell: tuple[int | None, int], *, stale: bool
    ) -> None:
        """Paint this; what is counted anew is `stale` until it comes."""
        self.knobs, self.result, self.cell, self.stale = tuple(knobs), result, cell, stale
        height = len(self.lines(self.size.width or 80, 0))
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """Keys, a blank line, the grid."""
        lines = knob_lines(self.knobs, width, self.glyphs)
        if self.result is None:
            return lines
        grid = grid_spans(
            self.result, self.cell, focused=self.has_focus, stale=self.stale, width=width, glyphs=self.glyphs
        )
        return [*lines, [], *grid] if grid else lines

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The cursor shows where keys go."""
        self.repaint()

    def on_click(self, event: Click) -> None:
        """A click moves the cursor to the cell under it."""
        if self.result is None or not self.result.grid:
            return
        row = event.y - (len(self.lines(self.size.width, 0)) - len(self.result.grid))
        column = (event.x - FIRST_COLUMN) // COLUMN
        here = self._place()
        if here and 0 <= row < len(self.result.grid) and 0 <= column < len(self.result.grid[0]):
            self.post_message(self.Moved(row - here[0], column - here[1]))

    def action_move(self, rows: int, columns: int) -> None:
        """Tell that the cursor is to move."""
        self.post_message(self.Moved(rows, columns))

    def action_turn(self, name: str, steps: int) -> None:
        """Tell which field is to be turned."""
        self.post_message(self.Turned(name, steps))

    def action_explain(self) -> None:
        """Tell that formulas are wanted."""
        self.post_message(self.Explained())

    def action_scroll_below(self, pages: int) -> None:
        """Tell that what stands below is to scroll."""
        self.post_message(self.Scrolled(pages))

    def _place(self) -> tuple[int, int] | None:
        """Row and column of the cursor, None while its cell is being counted."""
        if self.result is None:
            return None
        marked = self.cell[0] or self.result.context, self.cell[1]
        return next(
            (
                (number, column)
                for number, row in enumerate(self.result.grid)
                for column, each in enumerate(row)
                if (each.context, each.batch) == marked
            ),
            None,
        )
