"""The Doctor screen: known traps of this machine and its Pythons, each with evidence and what to do."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widgets import Static

from hfbench.doctor.check import TOPICS
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.doctor_asks import (
    Examined,
    ExaminedAll,
    LastKnown,
    PythonsTold,
    examine_all,
    examine_one,
    keep_last,
    read_last,
)
from hfbench.screens.messages import Trouble
from hfbench.widgets.doctor_rows import COLUMNS, ENVIRONMENT, Known, age_of, detail_lines, records_of
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.span_view import SpanView

WIDE = 110
"""Columns from which the check under the cursor is told beside the list."""

TICK = 10.0
"""Seconds between two repaints of the age."""

EXAMINING = "looking at this machine ..."
FINE = "no trouble: t shows every check"


HELP = Help(
    "Doctor",
    "A row a known trap, by topic, then a row a Python that actions can run in. `ok`; `! warning`: works, but worse; "
    "`x error`: something cannot work; `~ unknown`: could not be told. What was found the last time is here at once, "
    "and all of it is looked at again beside the screen: a verdict with `...` is of the last time. Nothing is changed "
    "on the machine and nothing is sent.\n"
    "`r` makes the check under the cursor again, `R` all, `t` shows only trouble, `/` filters. `enter` shows the whole "
    "text of one: what was found and seen, what to do, why it matters; `y` copies it.\n"
    "On this screen `r` does not record: the palette does. On the command line: hfbench doctor.",
)


class CheckTable(RecordTable):
    """Checks by topic, then Pythons."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class Findings(SeeThrough, Container):
    """The table, and below or beside it the row under its cursor."""


class DoctorScreen(BenchScreen):
    """The last answer at once, with its age, while the checks are made anew in a child process."""

    help = HELP

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "again", "again", id="doctor.again"),
        Binding("R", "all", "all", id="doctor.all"),
        Binding("t", "trouble", "only trouble", id="doctor.trouble"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("y", "copy_check", "copy", show=False, id="doctor.copy"),
        Binding("enter", "close", "back", id="doctor.close"),
    ]

    DEFAULT_CSS = """
    DoctorScreen {
        & #summary { height: 1; margin-bottom: 1; color: $text-muted; }
        & Findings { height: 1fr; layout: vertical; }
        & CheckTable { height: 1fr; min-height: 5; }
        & SpanView { height: 40%; margin-top: 1; }
        &.-wide Findings { layout: horizontal; }
        &.-wide CheckTable { width: 60%; }
        &.-wide SpanView { height: 1fr; width: 1fr; margin: 0 0 0 3; }
        &.-whole CheckTable { display: none; }
        &.-whole SpanView { height: 1fr; margin: 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.known = Known(checks={}, environments={})
        self.pending: frozenset[str] = frozenset()
        """Topics, ids of checks, and ENVIRONMENT, that are looked at now."""
        self._remembering = Background(self, lambda error: LastKnown(None))
        self._keeping = Background(self, Trouble)
        self._examining = Background(self, ExaminedAll)
        self._complete = False
        """Whether every topic answered since the screen was opened or asked for all again."""
        self._records: list[Record] = []
        self._placed = False

    @property
    def at_rest(self) -> bool:
        """Nothing is looked at any more."""
        return super().at_rest and not self.pending

    def trail(self) -> tuple[str, ...]:
        """The checks themselves."""
        return ("Doctor",)

    def status(self) -> tuple[str, ...]:
        """How old what is shown is, or what is looked at now."""
        left = [topic for topic in TOPICS if topic in self.pending]
        if left:
            return (*super().status(), f"looking at {left[0]}, {len(left)} of {len(TOPICS)} topics left")
        if self.pending:
            return (*super().status(), "looking again")
        return (*super().status(), *filter(None, (age_of(self.known, time.time()),)))

    def body(self) -> ComposeResult:
        """Filter, trouble, the summary, the checks, one of them."""
        yield FilterBar()
        yield Notice()
        yield Static(id="summary", markup=False)
        with Findings():
            yield CheckTable(COLUMNS, empty=EXAMINING)
            yield SpanView()

    def on_mount(self) -> None:
        """Show what was kept; the checks follow."""
        self.set_focus(self.query_one(CheckTable))
        self.pending = frozenset((*TOPICS, ENVIRONMENT))
        self._paint()
        self._remembering.start(read_last)
        self.set_interval(TICK, self._tick)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._remembering.stop()
        self._examining.stop()

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        super().on_resize(event)
        self.set_class(event.size.width >= WIDE, "-wide")

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()

    def _tick(self) -> None:
        if self.in_front:
            self.refresh_frame()

    # -- what is known --------------------------------------------------------

    @on(LastKnown)
    def _last_known(self, message: LastKnown) -> None:
        if not self.is_attached or not self.app.is_running:
            return  # leaving: the widgets are gone already
        if message.known is not None:
            self.known = message.known
        self._examine(again=False)

    def _examine(self, *, again: bool) -> None:
        self.pending = frozenset((*TOPICS, ENVIRONMENT))
        self._complete = True
        self.query_one(Notice).clear()
        self._examining.start(partial(examine_all, again))
        self._paint()

    @on(Examined)
    def _examined(self, message: Examined) -> None:
        news = {each.id: each for each in message.checks}
        kept = {
            id: each for id, each in self.known.checks.items() if not (message.whole and each.topic == message.topic)
        }
        ordered = sorted((kept | news).values(), key=lambda each: TOPICS.index(each.topic))
        self.known = replace(self.known, checks={each.id: each for each in ordered})
        self.pending -= {message.topic, *news}
        self._paint()

    @on(PythonsTold)
    def _pythons_told(self, message: PythonsTold) -> None:
        self.known = replace(self.known, environments={each.name: each for each in message.environments})
        self._paint()  # they come last: what is pending ends with `ExaminedAll`

    @on(ExaminedAll)
    def _examined_all(self, message: ExaminedAll) -> None:
        self.pending = frozenset()
        if not self.is_attached or not self.app.is_running:
            return
        if message.error is not None:
            self.query_one(Notice).show_error(message.error)
        elif self._complete:
            self.known = replace(self.known, at=time.time())
        self._keeping.start(partial(keep_last, self.known))
        self._paint()

    # -- keys -----------------------------------------------------------------

    def action_again(self) -> None:
        """Make the check under the cursor again."""
        key = self.query_one(CheckTable).current
        if key is None:
            return
        if self.pending:
            self.notify("all are looked at already; R begins anew")
            return
        python = key.startswith(ENVIRONMENT)
        self.pending, self._complete = frozenset({ENVIRONMENT if python else key}), False
        self._examining.start(partial(examine_one, "" if python else key))
        self._paint()

    def action_all(self) -> None:
        """Make all checks again, and ask every Python anew."""
        self._examine(again=True)

    def action_trouble(self) -> None:
        """Only what is not ok, or everything."""
        self.bench.places.only_trouble = not self.bench.places.only_trouble
        self._paint()

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(CheckTable).filter = message.text

    @on(RecordTable.Chosen)
    def _open(self) -> None:
        self._show_whole(True)

    def _show_whole(self, whole: bool) -> None:
        self.set_class(whole, "-whole")
        self.set_focus(self.query_one(SpanView) if whole else self.query_one(CheckTable), scroll_visible=False)

    def action_back(self) -> None:
        """From the whole text to the list first."""
        if self.has_class("-whole"):
            self._show_whole(False)
        else:
            super().action_back()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`enter` goes back from the whole text alone, and the list behind it is not filtered."""
        whole = self.has_class("-whole")
        return whole if action == "close" else not (whole and action in ("filter", "trouble"))

    def action_close(self) -> None:
        """From the whole text to the list."""
        self._show_whole(False)

    async def action_copy_check(self) -> None:
        """All that is known of the check under the cursor."""
        if key := self.query_one(CheckTable).current:
            lines = detail_lines(self.known, key, 100, glyphs_of(self.app))
            await self.copy("\n".join("".join(text for text, _ in line).rstrip() for line in lines))

    @on(RecordTable.Highlighted)
    def _moved(self, message: RecordTable.Highlighted) -> None:
        if message.key and self._placed:
            self.bench.places.check = message.key
        if self.in_front:
            self._paint_one()
            self.query_one(SpanView).action_scroll_ends(-1)

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        only, table = self.bench.places.only_trouble, self.query_one(CheckTable)
        records = records_of(self.known, self.pending, glyphs_of(self.app), only_trouble=only)
        table.empty = FINE if only and self.known.checks and not self.pending else EXAMINING
        if records != self._records:
            self._records = records
            table.show(records)
        if not self._placed:
            self._placed = table.move_to(self.bench.places.check) or not self.pending
        said = [
            self.known.headline or "nothing is known yet",
            *(["only trouble is shown, t shows all"] if only else []),
        ]
        self.query_one("#summary", Static).update(f" {glyphs_of(self.app).dot} ".join(said), layout=False)
        self.refresh_frame()
        self._paint_one()

    def _paint_one(self) -> None:
        key, known, glyphs = self.query_one(CheckTable).current, self.known, glyphs_of(self.app)
        self.query_one(SpanView).show(lambda width: detail_lines(known, key, width, glyphs) if key else [])
