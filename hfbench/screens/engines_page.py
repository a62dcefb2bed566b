"""The page of one engine: the verdict rule by rule, its proof, its manifest and its build log."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.screens.engines_asks import EngineShown
from hfbench.screens.engines_jobs import EngineJobs, EngineJobsRead
from hfbench.screens.engines_keys import EngineKeys
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.widgets.cells import Span
from hfbench.widgets.engine_manifest import manifest_lines
from hfbench.widgets.engine_rows import EngineJob, note_lines, proof_lines, verdict_lines
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.log_view import LogView
from hfbench.widgets.notice import Notice
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.engines.listing import Listed

TABS = ("Verdict", "Proof", "Manifest", "Log")


class EngineScreen(EngineKeys):
    """One engine in four tabs."""

    help = Help(
        "Engine",
        "`[` and `]` or left and right change the tab, `up` and `down` scroll. Each rule tells what the engine was "
        "built with, what is here, and what to do.\n"
        "`c` checks again and hashes every file, `l` loads it as a job, `b` measures its model with it, `R` builds it "
        "again, `y` copies its path.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,left_square_bracket", "tab(-1)", "previous tab", show=False, id="engine.previous-tab"),
        Binding("right_square_bracket,right", "tab(1)", "next tab", id="engine.next-tab"),
    ]

    def __init__(self, engine: Listed, shown: EngineShown | None = None, tried: EngineJob | None = None) -> None:
        super().__init__()
        self._engine, self._tried = engine, tried
        self.tab = TABS[0]
        self._jobs = EngineJobs(self)
        if shown:
            self.shown[engine.path] = shown

    def begin_at(self, tab: str) -> None:
        """Have another tab in front when it opens; a name of none changes nothing."""
        self.tab = tab if tab in TABS else self.tab

    @property
    def engine(self) -> Listed:
        """The one the page is about."""
        return self._engine

    def trail(self) -> tuple[str, ...]:
        """Which engine, and the tab in front."""
        return ("Engines", self._engine.path.rstrip("/").rpartition("/")[2], self.tab)

    def body(self) -> ComposeResult:
        """Tabs, trouble, what is under way, and text or log."""
        yield TabLine(TABS, self.tab)
        yield Notice()
        text, log = SpanView(), LogView(empty="reading ...")
        text.help = log.help = self.help
        yield text
        yield log

    def on_mount(self) -> None:
        """Read what was not read yet."""
        self._show_tab()
        self._jobs.look(self.bench.machine.known_jobs)
        if self._engine.path not in self.shown:
            self.reader.show(self._engine.path)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        super().on_unmount()
        self._jobs.stop()

    def machine_changed(self) -> None:
        """A trial load may have ended."""
        super().machine_changed()
        self._jobs.look(self.bench.machine.known_jobs)

    @on(EngineJobsRead)
    def _jobs_read(self, message: EngineJobsRead) -> None:
        self._tried = message.trials.get(self._engine.path, self._tried)
        self._paint()

    def take_checked(self, listed: Listed) -> None:
        """The new verdict; the manifest may be another one."""
        self._engine = listed
        self.reader.show(listed.path)

    def known_changed(self) -> None:
        """Say so."""
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

    def _show_tab(self) -> None:
        log = self.tab == "Log"
        self.query_one(LogView).display, self.query_one(SpanView).display = log, not log
        self.query_one(TabLine).show(self.tab)
        self.set_focus(self.query_one(LogView) if log else self.query_one(SpanView))
        self._paint()
        self.query_one(SpanView).action_scroll_ends(-1)
        self.refresh_frame()

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        notice = self.query_one(Notice)
        notice.show("checking again, every file is hashed", state="muted") if self.checking else notice.clear()
        if self.tab == "Log":
            self._paint_log()
        else:
            glyphs, tab = glyphs_of(self.app), self.tab
            self.query_one(SpanView).show(lambda width: self._lines(tab, width, glyphs))

    def _paint_log(self) -> None:
        view, shown, read = self.query_one(LogView), self.result, self.shown.get(self._engine.path)
        view.empty = (shown.log_trouble if shown else str(read.error)) if read else "reading ..."
        lines = list(shown.log) if shown else []
        if view.tail(len(lines) + 1) != lines:
            view.show(lines, from_top=True)
        else:
            view.refresh()

    def _lines(self, tab: str, width: int, glyphs: Glyphs) -> list[list[Span]]:
        if tab == "Verdict":
            return verdict_lines(self._engine, width, glyphs, tried=self._tried, whole=True)
        read, shown = self.shown.get(self._engine.path), self.result
        if shown is None:
            waits = read is None
            return note_lines(
                "reading ..." if waits else str(read and read.error), "muted" if waits else "error", width, glyphs
            )
        if shown.manifest is None:
            return note_lines("this engine has no manifest: hfbench did not build it", "unknown", width, glyphs)
        if tab == "Proof":
            return proof_lines(shown.manifest.proof, width, glyphs)
        return manifest_lines(shown.manifest, sealed=shown.sealed, width=width, glyphs=glyphs)
