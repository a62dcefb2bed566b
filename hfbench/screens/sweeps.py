"""The Sweeps screen: everything that was varied, with how far each sweep is, the latest first."""

from __future__ import annotations

import time
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.screens.confirm import Confirm
from hfbench.screens.sweep_asks import SweepsListed, SweepsReader
from hfbench.screens.sweep_keys import OTHER_KEYS, URGENT_KEYS, AtHand, SweepKeys
from hfbench.sweeps.model import SweepRow
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.list_and_detail import ListAndDetail
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import Record, toggled
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.sweep_rows import SWEEP_COLUMNS, row_lines, sweep_record

LOOKING = "looking for sweeps ..."
NOTHING = "no sweep yet: 1, then B on a model, and a list such as 1,8,32 in a field"

HELP = Help(
    "Sweeps",
    "A sweep is a script with a matrix, run cell by cell by a process of its own: it goes on when you leave, and is "
    "here whoever started it. `enter` opens one. `space` marks sweeps, `=` compares those that are marked.\n"
    "`s` resumes one that was interrupted, without redoing finished cells; `R` runs failed cells again, and on a "
    "sweep's page any cell; `e` opens the form filled as one was; `c` cancels; `w` writes a report; `D` deletes one "
    "with its folder, but not its jobs. A new one begins in any form: give a field a list such as 1,8,32 or a range "
    "such as 16..128*2.",
)


class SweepTable(RecordTable):
    """Sweeps by name."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class SweepsScreen(SweepKeys):
    """All sweeps there are, and the one under the cursor."""

    help = HELP

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        *URGENT_KEYS,
        *OTHER_KEYS,
        Binding("space", "mark", "mark", id="sweeps.mark"),
        Binding("equals_sign", "compare_marked", "compare", id="sweeps.compare"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("D", "delete", "delete", id="sweeps.delete"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, SweepRow] = {}
        self.marked: list[str] = []
        self._reader = SweepsReader(self)
        self._listed = False
        self._records: list[Record] = []

    def trail(self) -> tuple[str, ...]:
        """The list itself."""
        return ("Sweeps",)

    @property
    def at_rest(self) -> bool:
        """Listed."""
        return super().at_rest and self._listed

    @property
    def row(self) -> SweepRow | None:
        """The sweep under the cursor."""
        key = self.query_one(SweepTable).current if self.is_mounted else None
        return self.rows.get(key or "")

    @property
    def at_hand(self) -> AtHand | None:
        """The sweep under the cursor."""
        row = self.row
        return AtHand(row.name, row.folder, row.state, row.counts) if row else None

    def body(self) -> ComposeResult:
        """Filter, trouble, the list, one of it."""
        yield FilterBar()
        yield Notice()
        yield ListAndDetail(SweepTable(SWEEP_COLUMNS, empty=LOOKING))

    def on_mount(self) -> None:
        """Read beside the screen."""
        self.set_focus(self.query_one(SweepTable))
        self._reader.start()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reader.stop()

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()
        self._reader.look_now()

    def look_again(self) -> None:
        """At once."""
        self._reader.look_now()

    @on(SweepsListed)
    def _told(self, message: SweepsListed) -> None:
        if not self.is_attached or not self.app.is_running:
            return  # leaving: the widgets are gone already
        first, self._listed = not self._listed, True
        table, notice = self.query_one(SweepTable), self.query_one(Notice)
        table.empty = NOTHING
        if message.error is not None:
            notice.show_error(message.error)
        else:
            notice.clear()
            self.rows = {row.name: row for row in message.rows}
            self.marked = [name for name in self.marked if name in self.rows]
        self._paint()
        table.refresh()
        if first and self.bench.places.sweep:
            table.move_to(self.bench.places.sweep)

    @on(RecordTable.Highlighted)
    def _moved(self, message: RecordTable.Highlighted) -> None:
        if message.key:
            self.bench.places.sweep = message.key
        if self.in_front:
            self._paint_one()
            self.query_one(ListAndDetail).to_top()
            self.refresh_bindings()

    @on(RecordTable.Chosen)
    def _open(self, message: RecordTable.Chosen) -> None:
        self.bench.open_sweep(message.key)

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(SweepTable).filter = message.text

    # -- keys -----------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark the sweep under the cursor, or take its mark away."""
        if row := self.row:
            self.marked = toggled(self.marked, row.name)
            self._paint()

    def action_compare_marked(self) -> None:
        """Compare the sweeps that are marked."""
        if len(self.marked) < 2:
            self.notify("mark two sweeps or more with space, then = compares them")
        else:
            self.bench.open_compare(self.marked)

    @work
    async def action_delete(self) -> None:
        """Ask, then delete the sweep's folder; its jobs stay."""
        from hfbench.conduct.start import remove

        if (sweep := self.at_hand) is None:
            return
        if await self.app.push_screen_wait(Confirm(f"delete sweep {sweep.name}? its jobs stay")):
            self._do(partial(remove, sweep.folder), f"{sweep.name} is deleted")

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        now, glyphs = time.time(), glyphs_of(self.app)
        records = [sweep_record(row, row.name in self.marked, now, glyphs) for row in self.rows.values()]
        if records != self._records:
            self._records = records
            self.query_one(SweepTable).show(records)
            self.query_one(ListAndDetail).share_room()
            self.refresh_bindings()
        self._paint_one()

    def _paint_one(self) -> None:
        row, glyphs = self.row, glyphs_of(self.app)
        self.query_one(ListAndDetail).detail.show(lambda width: row_lines(row, width, glyphs) if row else [])
