"""The matrix of kernels, configurations and architectures with its cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.actions.kernel_static import USUAL
from hfbench.widgets.cells import width_of
from hfbench.widgets.help import Help
from hfbench.widgets.kernel_rows import KernelState, MatrixRow, cell_of, label_of, matrix_rows
from hfbench.widgets.line_table import MARK, Cell, LineTable
from hfbench.widgets.record_columns import Column, Placed, lay_out

WIDE = 112
"""Cells from which on a cell tells figures too."""

KEPT_LONGEST = ("sm_90", "sm_100", "sm_89", "sm_80", "sm_120", "sm_86")
"""Architectures in the order in which a terminal of less than 80 columns keeps them."""

COLUMNS = (
    Column("kernel", "Kernel", flexible=True, min=12, max=48, middle=True),
    *(Column(arch, arch, min=6, priority=KEPT_LONGEST.index(arch) + 1) for arch in USUAL),
)


class KernelMatrix(LineTable):
    """A row a kernel and below it one a configuration; what a key means is decided by who holds it."""

    help: ClassVar[Help] = Help(
        "Kernels",
        "A row a configuration, a column an architecture: sm_80 A100, sm_86 A10 and RTX 3090, sm_89 L4, L40S and "
        "RTX 4090, sm_90 H100 and H200, sm_100 B200, sm_120 RTX 5090.\n"
        "`ok`: fits; `x smem`: asks for more shared memory than a block may have there; `x tmem`: more tensor memory; "
        "`! spill`: registers do not suffice; `x fails`: does not compile; `~`: could not be judged; `-`: not yet "
        "compiled. Wide terminals add figures: `ok 96r 32k` takes 96 registers a thread and 32 KiB of shared memory "
        "a block, `! spills 672` spills 672 bytes a thread.\n"
        "A kernel's own row counts what is fine. `enter` folds a kernel, `s` compiles it, `S` all of them.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "fold", show=False, id="kernels.fold")]

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        row: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.states: tuple[KernelState, ...] = ()
        self.folded: set[str] = set()
        self._rows: list[MatrixRow] = []
        self._placed: tuple[int, tuple[Placed, ...]] = (0, ())

    @property
    def current(self) -> MatrixRow | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def show(self, states: Sequence[KernelState]) -> None:
        """Show these kernels; the cursor stays on its row while there is one like it."""
        if tuple(states) != self.states:
            self.states = tuple(states)
            self._rebuild()

    def go_to(self, kernel: str, config: str = "") -> bool:
        """Put the cursor on a kernel, or on the first row of a configuration of it; False when there is no such row."""
        wanted = (n for n, row in enumerate(self._rows) if (row.state.kernel, row.config) == (kernel, config))
        place = next(wanted, None)
        if place is not None:
            self.cursor = place
        return place is not None

    def row_count(self) -> int:
        """Kernels, and configurations of those that are not folded."""
        return len(self._rows)

    def row_cells(self, row: int) -> Sequence[Cell]:
        """The cells of a row."""
        shown, wide = self._rows[row], self.line_width >= WIDE
        label = label_of(shown, self.folded, self.glyphs), "" if shown.config else "title"
        by_key: dict[str, Cell] = {arch: cell_of(shown, arch, self.glyphs, wide=wide) for arch in USUAL}
        by_key["kernel"] = label
        return [by_key[place.column.key] for place in self.placed()]

    def placed(self) -> tuple[Placed, ...]:
        """The columns that fit; worked out once for a width."""
        width = self.line_width
        if self._placed[0] != width:
            wide = width >= WIDE
            wanted = [max((width_of(label_of(row, self.folded, self.glyphs)) for row in self._rows), default=0)]
            for arch in USUAL:
                texts = (cell_of(row, arch, self.glyphs, wide=wide)[0] for row in self._rows)
                wanted.append(max(map(width_of, texts), default=0))
            self._placed = width, lay_out(COLUMNS, wanted, width - MARK)
        return self._placed[1]

    def choose(self, row: int) -> None:
        """Fold or unfold the kernel of a row."""
        kernel = self._rows[row].state.kernel
        self.folded ^= {kernel}
        self.go_to(kernel)
        self._rebuild()

    def empty_text(self) -> str:
        """Nothing was listed yet."""
        return "looking for kernels ..."

    def watch_cursor(self, before: int, now: int) -> None:
        """Tell whoever shows the row in full."""
        super().watch_cursor(before, now)
        self.post_message(self.Moved(now))

    def _rebuild(self) -> None:
        here = self.current
        self._rows = matrix_rows(self.states, self.folded)
        self._placed = (0, ())
        if here is not None:
            alike = [n for n, row in enumerate(self._rows) if row.state.kernel == here.state.kernel]
            same = [n for n in alike if self._rows[n].config == here.config]
            if same or alike:
                self.cursor = (same or alike)[0]
        self.rows_changed()
