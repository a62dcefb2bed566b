"""The Registry screen: a private hub of this machine, its repositories, tokens, users, traffic and health."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from hfbench.errors import MissingError
from hfbench.paths import registry_root
from hfbench.screens.background import Background
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.screens.registry_asks import Ignored, RegistryShown, TrafficSeen, show_registry, watch_traffic
from hfbench.screens.registry_jobs import RegistryJobs, RegistryJobsRead
from hfbench.screens.registry_keys import RegistryKeys
from hfbench.widgets.cells import Span
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.registry_lines import (
    Sampled,
    Upkeep,
    env_lines,
    health_lines,
    live_lines,
    start_lines,
    summary,
)
from hfbench.widgets.registry_rows import (
    REPO_COLUMNS,
    TOKEN_COLUMNS,
    USER_COLUMNS,
    repo_records,
    token_records,
    user_records,
)
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.actions.registry_show import RegistryView

TABS = ("Repositories", "Tokens", "Users", "Live", "Health")
TABLES: dict[str, tuple[tuple[Column, ...], str]] = {
    "Repositories": (REPO_COLUMNS, "no repository yet: e copies the lines for a shell, then hf upload NAME FOLDER"),
    "Tokens": (TOKEN_COLUMNS, "no token: n makes one"),
    "Users": (USER_COLUMNS, "no user: hfbench registry user add NAME"),
}
SAMPLES = 8
"""Looks at the counters over which rates are taken."""

HELP = Help(
    "Registry",
    "A private hub that is kept on this machine, served or not; unmodified Hugging Face clients use it. `[` and `]` or "
    "left and right change the tab: repositories with what they hold, tokens without their secrets, users with their "
    "roles, traffic while it is served, health.\n"
    "`n` makes a token and shows it once, `x` revokes the one under the cursor. `f` checks every stored byte in a job, "
    "`g` opens the form that frees what no repository needs, `s` counts in a job. `e` copies the lines of `hfbench "
    "env` for a shell.\n"
    "`F` shows a hub in another folder, `u` looks again, `/` filters, `o` walks through the orders, `y` copies the "
    "row's name. Users and roles: hfbench registry user --help.",
)


class RegistryTable(RecordTable):
    """Repositories, tokens or users."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "order", "order", show=False),
        Binding("enter", "choose", "open", show=False),
    ]


class RegistryText(SpanView):
    """Traffic, health, or how a hub is started."""

    help = HELP


class RegistryScreen(RegistryKeys):
    """One hub, read by `registry.show` in a child process; its counters are read again every few seconds."""

    help = HELP

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,left_square_bracket", "tab(-1)", "previous tab", show=False, id="registry.previous-tab"),
        Binding("right_square_bracket,right", "tab(1)", "next tab", id="registry.next-tab"),
    ]

    DEFAULT_CSS = """
    RegistryScreen {
        & #summary { height: 1; margin-bottom: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self) -> None:
        super().__init__(str(registry_root().absolute()))
        self.tab = TABS[0]
        self.looked = False
        """Whether the hub was read, with whatever outcome."""
        self.absent = False
        """Whether there is no hub in the folder."""
        self._upkeep: dict[str, Upkeep] = {}
        self._samples: deque[Sampled] = deque(maxlen=SAMPLES)
        self._records: dict[str, list[Record]] = {}
        self._reading = Background(self, lambda error: RegistryShown(error=error))
        self._watching = Background(self, lambda error: Ignored())
        self._watched = False
        self._jobs = RegistryJobs(self)

    @property
    def at_rest(self) -> bool:
        """Read."""
        return super().at_rest and self.looked

    def trail(self) -> tuple[str, ...]:
        """The tab in front."""
        return ("Registry", self.tab) if self.view else ("Registry",)

    def body(self) -> ComposeResult:
        """Tabs, totals, filter, trouble, tables and text, of which one is seen."""
        yield TabLine(TABS, self.tab)
        yield Static(id="summary", markup=False)
        yield FilterBar()
        yield Notice()
        for name, (columns, empty) in TABLES.items():
            yield RegistryTable(columns, empty=empty, id=name.lower())
        yield RegistryText()

    def on_mount(self) -> None:
        """Look."""
        self._show_tab()
        self._jobs.look(self.bench.machine.known_jobs, self.folder)
        self.action_update()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()
        self._watching.stop()
        self._jobs.stop()

    def on_screen_resume(self) -> None:
        """A job may have changed something meanwhile."""
        super().on_screen_resume()
        if self.looked and self.in_front:
            self.action_update()

    def on_screen_suspend(self) -> None:
        """Nobody sees the counters."""
        self._watch_no_more()

    def _watch_no_more(self) -> None:
        self._watched = False
        self._watching.stop()

    def machine_changed(self) -> None:
        """Jobs began or ended, such as a check."""
        super().machine_changed()
        self._jobs.look(self.bench.machine.known_jobs, self.folder)

    # -- what is known --------------------------------------------------------

    def action_update(self) -> None:
        """Look again."""
        self._reading.start(partial(show_registry, self.folder))

    def folder_changed(self) -> None:
        """Another hub."""
        self.view, self.looked, self._upkeep = None, False, {}
        self._samples.clear()
        self._watch_no_more()
        self._jobs.look(self.bench.machine.known_jobs, self.folder)
        self.action_update()
        self._paint()

    @on(RegistryShown)
    def _shown(self, message: RegistryShown) -> None:
        self.looked, self.view = True, message.view
        if not self.is_attached or not self.app.is_running:
            return
        notice, error = self.query_one(Notice), message.error
        self.absent = isinstance(error, MissingError) and str(error.where) == self.folder
        if error is None or self.absent:
            notice.clear()
        else:
            notice.show_error(error)
        if self.view is not None and not self._samples:
            self._samples.append(Sampled(traffic=self.view.traffic, at=time.monotonic()))
        if self.view is not None and self.in_front and not self._watched:
            self._watched = True
            self._watching.start(partial(watch_traffic, self.folder))
        self._show_tab()

    @on(TrafficSeen)
    def _traffic(self, message: TrafficSeen) -> None:
        if self._samples and message.traffic.sent_bytes < self._samples[-1].traffic.sent_bytes:
            self._samples.clear()  # its counters were removed
        self._samples.append(Sampled(traffic=message.traffic, at=message.at))
        if self.tab == "Live":
            self._paint()

    @on(RegistryJobsRead)
    def _jobs_read(self, message: RegistryJobsRead) -> None:
        before, self._upkeep = self._upkeep, dict(message.upkeep)
        if before and before != self._upkeep:
            self.action_update()
        self._paint()

    # -- tabs -----------------------------------------------------------------

    def action_tab(self, steps: int) -> None:
        """The next tab, or the one before; after the last comes the first."""
        self.tab = TABS[(TABS.index(self.tab) + steps) % len(TABS)]
        self._show_tab()

    @on(TabLine.Chosen)
    def _clicked(self, message: TabLine.Chosen) -> None:
        self.tab = message.name
        self._show_tab()

    @property
    def table(self) -> RecordTable | None:
        """The table in front; None where a text is, or nothing is known yet."""
        if self.view is None or self.tab not in TABLES or not self.is_mounted:
            return None
        return self.query_one(f"#{self.tab.lower()}", RecordTable)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only tables are filtered, and a hub that is not there has no tokens and needs no upkeep."""
        if action == "filter":
            return self.table is not None
        if action in ("tab", "new_token", "fsck", "gc", "stats", "env"):
            return self.view is not None
        return self.tab == "Tokens" and self.view is not None if action == "revoke" else True

    def _show_tab(self) -> None:
        if not self.is_mounted:
            return
        front = self.table
        for each in self.query(RecordTable):
            each.display = each is front
        text = self.query_one(RegistryText)
        text.display, self.query_one(TabLine).display = front is None, self.view is not None
        self.query_one(TabLine).show(self.tab)
        for bar in self.query(FilterBar):
            if front is not None and bar.text != front.filter:
                bar.close(keep=False)
        self.set_focus(front or text, scroll_visible=False)
        self._paint()
        text.action_scroll_ends(-1)
        self.refresh_bindings()

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        if table := self.table:
            table.filter = message.text

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front or not self.app.is_running:
            return
        glyphs, view = glyphs_of(self.app), self.view
        told = summary(view, glyphs) if view else ""
        self.query_one("#summary", Static).update(told, layout=False)
        if view is not None and (table := self.table) is not None:
            records = _records(self.tab, view, glyphs)
            if self._records.get(self.tab) != records:
                self._records[self.tab] = records
                table.show(records)
        else:
            self.query_one(RegistryText).show(lambda width: self._lines(width, glyphs))
        self.refresh_frame()

    def _waiting(self) -> list[list[Span]]:
        return [] if self.looked else [[("looking for a hub ...", "muted")]]

    def _lines(self, width: int, glyphs: Glyphs) -> list[list[Span]]:
        if self.view is None:
            return start_lines(self.folder, width, glyphs) if self.absent else self._waiting()
        if self.tab == "Live":
            return [*live_lines(self._samples, self.view.use, width, glyphs), [], *env_lines(self.view.url)]
        return health_lines(self.view, self._upkeep, time.time(), width, glyphs)


def _records(tab: str, view: RegistryView, glyphs: Glyphs) -> list[Record]:
    if tab == "Repositories":
        return repo_records(view)
    return token_records(view, time.time(), glyphs) if tab == "Tokens" else user_records(view, glyphs)
