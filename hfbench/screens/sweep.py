"""The Sweep screen: the live cells of one sweep, a map of any metric over two axes, and the front of two metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widget import Widget

from hfbench.paths import jobs_root
from hfbench.screens.sweep_asks import SweepReader, SweepSeen, SweepUnread
from hfbench.screens.sweep_keys import OTHER_KEYS, URGENT_KEYS, AtHand
from hfbench.screens.sweep_looking import SweepLooking
from hfbench.screens.sweep_sight import STATE, Look, Sight
from hfbench.sweeps.model import CellView, SweepSnapshot, SweepState
from hfbench.units import show_elapsed
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.heat_grid import HeatGrid
from hfbench.widgets.help import Help
from hfbench.widgets.line_block import LineBlock
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import toggled
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.span_view import SpanView
from hfbench.widgets.sweep_panes import CellTable, FrontPane, FrontPlot, FrontTable, SweepRoom
from hfbench.widgets.sweep_rows import (
    cell_columns,
    cell_lines,
    cell_record,
    front_columns,
    front_records,
    head_lines,
    view_lines,
)

VIEWS = ("map", "cells", "front")


class SweepScreen(SweepLooking):
    """One sweep, live or over."""

    has_own_figures = True

    help = Help(
        "Sweep",
        "`v` walks through three views. The map has a place a cell, over two axes: what it is doing, or any metric. "
        "The table has a row a cell. The front weighs a latency against a throughput.\n"
        "`b` goes to the best cell. `m` chooses the metric; `a` and `d` turn the axes across and down, `f` and `F` the "
        "values of the others. `?` behind a figure: too few samples for an interval, or a verdict against the run. "
        "`enter` opens the job of a cell; `space` marks cells, `=` compares those that are marked.\n"
        "`s` resumes what was interrupted without redoing finished cells. `R` runs cells again: those that are marked, "
        "else those that failed, else the one under the cursor; its earlier job stays. `e` opens the form filled as "
        "this sweep was, to run another. `c` cancels, `w` writes a report, `y` copies the command. `tab` goes to the "
        "text, which scrolls.",
    )

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        *URGENT_KEYS,
        Binding("v", "view", "view", id="sweep.view"),
        Binding("b", "best", "best", show=False, id="sweep.best"),  # the line of the best one names it
        Binding("m", "metric", "metric", show=False, id="sweep.metric"),  # the line of the views names it
        Binding("t", "throughput", "throughput", show=False, id="sweep.throughput"),
        *OTHER_KEYS,
        Binding("space", "mark", "mark", id="sweep.mark"),
        Binding("equals_sign", "compare_marked", "compare", id="sweep.compare"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("a", "axis('x')", "across", show=False, id="sweep.across"),
        Binding("d", "axis('y')", "down", show=False, id="sweep.down"),
        Binding("f", "fix(1)", "other axes", show=False, id="sweep.others"),
        Binding("F", "fix(-1)", "other axes back", show=False, id="sweep.others-back"),
    ]

    DEFAULT_CSS = "SweepScreen { & #views { margin: 1 0 1 0; } }"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.marked: list[int] = []
        self._leads_to: int | None = None
        """The cell to go to once the map shows it."""
        self._wanted: Look | None = None
        """Where the user asked to stand, until that is seen."""
        self._here: int | None = None
        """The cell that the text is about, whichever view chose it."""
        self._reader = SweepReader(self, folder)

    def trail(self) -> tuple[str, ...]:
        """Which sweep."""
        return ("Sweeps", self.folder.name)

    def status(self) -> tuple[str, ...]:
        """How it is, for how long, and where it runs."""
        if self.snapshot is None:
            return ()
        on = () if self.snapshot.on == ("local",) else (", ".join(self.snapshot.on),)
        return (f"{self.snapshot.state} {show_elapsed(self.snapshot.seconds)}", *on)

    @property
    def at_rest(self) -> bool:
        """Read."""
        return super().at_rest and self.sight is not None

    @property
    def takes_keys(self) -> bool:
        """Keys that follow one that turns an axis wait until it is turned."""
        return super().takes_keys and self._wanted is None

    @property
    def at_hand(self) -> AtHand | None:
        """The sweep of this page."""
        snapshot = self.snapshot
        return AtHand(snapshot.name, snapshot.folder, snapshot.state, snapshot.counts()) if snapshot else None

    @property
    def cell(self) -> CellView | None:
        """The cell under the cursor of the view in front."""
        return self.cells.get(self._here or 0)

    @property
    def rerun(self) -> tuple[str, Callable[[], object]] | None:
        """The cells that are marked, else those that failed, else the one under the cursor."""
        from hfbench.conduct.start import rerun_cells

        marked, here = [number for number in self.marked if number in self.cells], self.cell
        if marked:
            cells = "the marked cell" if len(marked) == 1 else f"{len(marked):,} marked cells"
            return cells, partial(rerun_cells, self.folder, marked)
        if failed := super().rerun:
            return failed
        if here is None:
            return None
        return f"cell {here.number}, which is {here.state},", partial(rerun_cells, self.folder, [here.number])

    def body(self) -> ComposeResult:
        """Trouble, how far it is, the views."""
        yield FilterBar()
        yield Notice()
        yield LineBlock(id="head")
        yield LineBlock(id="views")
        yield SweepRoom()

    def on_mount(self) -> None:
        """Follow it beside the screen."""
        self.set_focus(self.query_one(HeatGrid))
        self._reader.start()

    def on_unmount(self) -> None:
        """Nobody looks any more; the sweep goes on."""
        self._reader.stop()
        self._doing.stop()

    def on_resize(self, event: Resize) -> None:
        """The map may have other room."""
        super().on_resize(event)
        self.call_after_refresh(self._paint)

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()

    def look_again(self) -> None:
        """At once."""
        self._reader.look_now()

    def stand(self, look: Look) -> None:
        """Look from there."""
        self._wanted = look
        self._reader.look(look)

    # -- what is read ---------------------------------------------------------

    @on(SweepSeen)
    def _seen(self, message: SweepSeen) -> None:
        if not self.is_attached or not self.app.is_running:
            return  # leaving: the widgets are gone already
        before, self.snapshot, self.sight = self.snapshot, message.snapshot, message.sight
        self._wanted = None if message.asked == self._wanted else self._wanted
        self.cells = {cell.number: cell for cell in message.snapshot.cells}
        if before is None or (before.state, before.counts()) != (message.snapshot.state, message.snapshot.counts()):
            self.refresh_bindings()
        self._paint()

    @on(SweepUnread)
    def _unread(self, message: SweepUnread) -> None:
        self.query_one(Notice).show_error(message.error)

    # -- where the user is ----------------------------------------------------

    @on(HeatGrid.Moved)
    def _moved(self, message: HeatGrid.Moved) -> None:
        if self.view == "map":
            self._go(message.number)

    @on(RecordTable.Highlighted)
    def _row(self, message: RecordTable.Highlighted) -> None:
        wanted = {"cells": CellTable, "front": FrontTable}.get(self.view)
        if wanted is not None and isinstance(message.table, wanted):
            self._go(int(message.key) if message.key else None)

    def _go(self, number: int | None) -> None:
        self._here = number
        self._paint_one()
        self.query_one(SpanView).action_scroll_ends(-1)
        if self.view == "front":
            self._paint_front()

    @on(HeatGrid.Chosen)
    @on(RecordTable.Chosen)
    def _open_job(self) -> None:
        cell = self.cell
        if cell is None or not cell.jobs:
            self.notify("this cell has no job yet" if cell else "the sweep has no cell here")
        elif not (jobs_root() / cell.jobs[-1]).is_dir():
            self.bench.complain(f"job {cell.jobs[-1].rpartition('-')[2]} was deleted; its figures stay in the sweep")
        else:
            self.bench.open_job(cell.jobs[-1])

    @on(HeatGrid.Scrolled)
    def _scroll(self, message: HeatGrid.Scrolled) -> None:
        self.query_one(SpanView).action_scroll_pages(message.pages)

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(CellTable).filter = message.text

    # -- keys -----------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what means something in the view in front."""
        if action in ("axis", "fix"):
            return self.view == "map"
        if action == "throughput":
            return self.view == "front"
        if action == "filter":
            return self.view == "cells"
        return super().check_action(action, parameters)

    def action_view(self) -> None:
        """The next view, with the cursor on the same cell."""
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        here, room = self._here, self.query_one(SweepRoom)
        for view in VIEWS:
            room.set_class(view == self.view, f"-{view}")
        self._paint()
        tables: dict[str, type[CellTable | FrontTable]] = {"cells": CellTable, "front": FrontTable}
        front: Widget = self.query_one(tables.get(self.view, HeatGrid))
        self.set_focus(front)
        if here is not None and isinstance(front, HeatGrid):
            front.move_to(here)
        elif here is not None and isinstance(front, RecordTable):
            front.move_to(str(here))
            self._go(int(front.current) if front.current else None)
        self.refresh_bindings()

    def action_best(self) -> None:
        """Put the cursor on the best cell, with the values of further axes that it has."""
        if self.sight is None or (best := self.sight.best) is None:
            self.notify("no cell has a figure yet that can be better or worse")
            return
        if self.view != "map":
            table: RecordTable = self.query_one(CellTable if self.view == "cells" else FrontTable)
            if not table.move_to(str(best.number)):
                self.notify(f"cell {best.number}, the best by {self.sight.leading}, is not in view here", markup=False)
            return
        fixed = {name: best.values[name] for name in self.sight.look.fixed}
        if fixed == dict(self.sight.look.fixed):
            self.query_one(HeatGrid).move_to(best.number)
        else:
            self._leads_to = best.number
            self.stand(replace(self.sight.look, fixed=fixed))

    def action_mark(self) -> None:
        """Mark the cell under the cursor, or take its mark away."""
        if (cell := self.cell) is not None:
            self.marked = [int(each) for each in toggled([str(n) for n in self.marked], str(cell.number))]
            self._paint()

    def action_compare_marked(self) -> None:
        """Compare the jobs of the cells that are marked."""
        cells = [self.cells[number] for number in self.marked if number in self.cells]
        lacking = [cell.number for cell in cells if not cell.jobs]
        if len(cells) < 2:
            self.notify("mark two cells or more with space, then = compares them")
        elif lacking:
            self.notify(f"cell {lacking[0]} has no job yet: only cells that ran can be compared")
        else:
            self.bench.open_compare([cell.jobs[-1] for cell in cells])

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        snapshot, sight = self.snapshot, self.sight
        if snapshot is None or sight is None or not self.is_mounted or not self.in_front:
            return
        glyphs = glyphs_of(self.app)
        self.refresh_frame()
        notice = self.query_one(Notice)
        if snapshot.reason:
            notice.show(snapshot.reason, state="warn")
        else:
            notice.clear()
        self.query_one("#head", LineBlock).show(
            lambda width: head_lines(snapshot, sight.best, sight.leading, width, glyphs)
        )
        self.query_one("#views", LineBlock).show(
            lambda width: view_lines(VIEWS, self.view, self.knobs(snapshot, sight), width, glyphs)
        )
        marked = frozenset(self.marked)
        if self.view == "map":
            self.query_one(HeatGrid).show(sight.map, marked, self.query_one(SweepRoom).map_room)
            if self._leads_to is not None and self._wanted is None:
                self.query_one(HeatGrid).move_to(self._leads_to)
                self._leads_to = None
        elif self.view == "cells":
            self._paint_cells(snapshot, sight)
        else:
            self._paint_front()
        if self._here is None and self.view == "map":
            self._here = self.query_one(HeatGrid).current
        self._paint_one()

    def _paint_cells(self, snapshot: SweepSnapshot, sight: Sight) -> None:
        metric = sight.leading if sight.look.metric == STATE else sight.look.metric
        table, glyphs = self.query_one(CellTable), glyphs_of(self.app)
        table.take_columns(cell_columns(snapshot, metric))
        marked, state = frozenset(self.marked), snapshot.state
        table.show([cell_record(cell, metric, cell.number in marked, glyphs, state) for cell in snapshot.cells])

    def _paint_front(self) -> None:
        if self.sight is None:
            return
        front, table = self.sight.front, self.query_one(FrontTable)
        if front is not None:
            table.take_columns(front_columns(front))
            table.show(front_records(front, self.cells, frozenset(self.marked)))
            self.query_one(FrontPane).share_room()
        self.query_one(FrontPlot).show(front, self.sight.why_no_front, self._here)

    def _paint_one(self) -> None:
        cell, glyphs = self.cell, glyphs_of(self.app)
        names: Sequence[str] = self.sight.metrics if self.sight else ()
        marked = cell is not None and cell.number in self.marked
        state: SweepState = self.snapshot.state if self.snapshot else "running"
        self.query_one(SpanView).show(
            lambda width: cell_lines(cell, names, marked, width, glyphs, state) if cell else []
        )
