"""The Engines screen: every engine there is, whether it loads here, and the first thing that does not fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from hfbench.paths import expand
from hfbench.screens.background import Background
from hfbench.screens.engines_asks import EnginesListed, list_engines
from hfbench.screens.engines_jobs import EngineJobs, EngineJobsRead
from hfbench.screens.engines_keys import EngineKeys
from hfbench.screens.engines_page import EngineScreen
from hfbench.screens.engines_recipe import first_values
from hfbench.widgets.engine_rows import COLUMNS, EngineJob, engine_record, verdict_lines
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.list_and_detail import ListAndDetail
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.engines.listing import Listed, Unread

REST = 0.3
"""Seconds the cursor stays on an engine before its manifest is read: whoever scrolls past asks for nothing."""

LOOKING = "looking for engines ..."
NOTHING = "no engine yet: n builds one, and so does E on the page of a model"


HELP = Help(
    "Engines",
    "Engines below `[engines] roots` of the configuration, or ./engines, and those that jobs have built. Whether each "
    "loads on this machine is told by every field of its manifest, without loading it: `ok loads here`, `x will not "
    "load`, `~ cannot tell`, `x damaged`; then the first thing that does not fit.\n"
    "`enter` opens one with its rules, proof, manifest and build log. `c` checks one again and hashes its files. `l` "
    "loads it as a job, in a process that may crash without harm. `b` measures its model with it, `R` builds it "
    "again, `n` builds another: each opens a form, filled in.\n"
    "`/` filters, `o` walks through the orders, `u` reads the configuration and looks again, `y` copies the path, "
    "`tab` goes to the text.",
)


class EngineTable(RecordTable):
    """Engines by path."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class EnginesScreen(EngineKeys):
    """Engines of the configured folders and of finished builds, and the one under the cursor."""

    help = HELP

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new", id="engines.new"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("u", "update", "update", show=False, id="engines.update"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.engines: dict[str, Listed] = {}
        self._builds: dict[str, str] = {}
        self._trials: dict[str, EngineJob] = {}
        self._jobs = EngineJobs(self)
        self._listing = Background(self, lambda error: EnginesListed(error=error))
        self._listed = False
        self._records: list[Record] = []
        self._rest: Timer | None = None

    @property
    def engine(self) -> Listed | None:
        """The one under the cursor."""
        path = self.query_one(EngineTable).current if self.is_mounted else None
        return self.engines.get(path or "")

    @property
    def at_rest(self) -> bool:
        """Listed, and the engine under the cursor read."""
        return super().at_rest and self._listed

    @property
    def roots(self) -> list[str]:
        """Folders to look in, absolute: those of the configuration, else ./engines, and those of finished builds."""
        configured = [str(expand(root)) for root in self.bench.config.engines.roots] or ["engines"]
        return list(dict.fromkeys([*map(os.path.abspath, configured), *self._builds.values()]))

    def trail(self) -> tuple[str, ...]:
        """The list itself."""
        return ("Engines",)

    def body(self) -> ComposeResult:
        """Filter, trouble, the list, one of it."""
        yield FilterBar()
        yield Notice()
        yield ListAndDetail(EngineTable(COLUMNS, empty=LOOKING))

    def on_mount(self) -> None:
        """Ask what jobs have built; the list follows."""
        self.set_focus(self.query_one(EngineTable))
        self._jobs.look(self.bench.machine.known_jobs)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        super().on_unmount()
        self._jobs.stop()
        self._listing.stop()

    def on_screen_resume(self) -> None:
        """Something may have been checked or built meanwhile."""
        super().on_screen_resume()
        if self._listed and self.in_front:
            self.action_update()

    def machine_changed(self) -> None:
        """Jobs began or ended, such as a build."""
        super().machine_changed()
        self._jobs.look(self.bench.machine.known_jobs)

    # -- what is known --------------------------------------------------------

    def action_update(self) -> None:
        """Look again, in the folders that the configuration names now."""
        self.bench.reread_config()
        self._listing.start(partial(list_engines, self.roots))

    @on(EngineJobsRead)
    def _jobs_read(self, message: EngineJobsRead) -> None:
        news = dict(message.builds) != self._builds
        self._builds, self._trials = dict(message.builds), dict(message.trials)
        if news:
            self.shown.clear()  # another engine may stand in the same place
        if news or not self._listed:
            self.action_update()
        self._paint()

    @on(EnginesListed)
    def _engines_listed(self, message: EnginesListed) -> None:
        first, self._listed = not self._listed, True
        if not self.is_attached or not self.app.is_running:
            return  # leaving: the widgets are gone already
        table, notice = self.query_one(EngineTable), self.query_one(Notice)
        table.empty = NOTHING
        if message.error:
            notice.show_error(message.error)
        else:
            self._tell_unread(message.unread)
            before, self.engines = self.engines, {each.path: each for each in message.engines}
            for path in [path for path in self.shown if self.engines.get(path) != before.get(path)]:
                del self.shown[path]
        self._paint()
        table.refresh()
        if first and self.bench.places.engine:
            table.move_to(self.bench.places.engine)
        self._follow()

    def _tell_unread(self, unread: Sequence[Unread]) -> None:
        """Folders of the configuration that cannot be looked into; those of builds come and go."""
        named = {os.path.abspath(expand(root)) for root in self.bench.config.engines.roots}
        told = [each.sentence for each in unread if each.root in named]
        notice = self.query_one(Notice)
        notice.show("; ".join(told), state="warn") if told else notice.clear()

    def take_checked(self, listed: Listed) -> None:
        """Its row."""
        if listed.path in self.engines:
            self.engines[listed.path] = listed

    @on(RecordTable.Highlighted)
    def _moved(self, message: RecordTable.Highlighted) -> None:
        if message.key:
            self.bench.places.engine = message.key
        if self.in_front:
            self._paint_one()
            self.query_one(ListAndDetail).to_top()
            self._follow()

    def _follow(self) -> None:
        """Read the engine under the cursor once it rests there."""
        if self._rest is not None:
            self._rest.stop()
        engine = self.engine
        if engine is not None and engine.path not in self.shown:
            self._rest = self.set_timer(REST, partial(self.reader.show, engine.path))

    # -- keys -----------------------------------------------------------------

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(EngineTable).filter = message.text

    @on(RecordTable.Chosen)
    def _open(self, message: RecordTable.Chosen) -> None:
        engine = self.engines[message.key]
        self.app.push_screen(EngineScreen(engine, self.shown.get(engine.path), self._trials.get(engine.path)))

    def action_new(self) -> None:
        """The form of a build, for the model of the engine under the cursor."""
        self.bench.open_form("engine.build", first_values(self.chosen_model, self.bench.config.engines.roots))

    # -- painting -------------------------------------------------------------

    def known_changed(self) -> None:
        """A row says what is done with it."""
        self._paint()

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        glyphs = glyphs_of(self.app)
        works = {self.checking: "checking ..."} if self.checking else {}
        records = [engine_record(each, works.get(path, ""), glyphs) for path, each in self.engines.items()]
        if records != self._records:
            self._records = records
            self.query_one(EngineTable).show(records)
            self.query_one(ListAndDetail).share_room()
        self._paint_one()

    def _paint_one(self) -> None:
        engine, glyphs = self.engine, glyphs_of(self.app)
        view = self.query_one(SpanView)
        if engine is not None:
            tried = self._trials.get(engine.path)
            view.show(lambda width: verdict_lines(engine, width, glyphs, tried=tried))
        elif self._listed and not self.engines:
            looked = [Fact("" if number else "looked below", root, "muted") for number, root in enumerate(self.roots)]
            view.show(lambda width: facts_lines(looked, width, glyphs))
        else:
            view.show(lambda width: [])
