"""The Diff screen: two models side by side, compared by the action of that name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.actions.diff import ACTION
from hfbench.actions.params import command_line
from hfbench.actions.registry import find
from hfbench.errors import HfbenchError
from hfbench.paths import expand
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.diff_ask import Compared, JobLost, JobMoved, ask, follow_job, follow_running
from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.diff_tabs.keys import ConfigDiffTab, GenerationDiffTab, TokenizerDiffTab
from hfbench.screens.diff_tabs.summary import SummaryTab
from hfbench.screens.diff_tabs.template import TemplateDiffTab
from hfbench.screens.diff_tabs.tensors import DiffTensorsTab
from hfbench.screens.diff_view import DiffView, name_of
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.progress_line import ProgressLine

TABS: tuple[type[DiffTab], ...] = (
    SummaryTab,
    DiffTensorsTab,
    ConfigDiffTab,
    GenerationDiffTab,
    TokenizerDiffTab,
    TemplateDiffTab,
)
"""In the order of the line."""


STARTING = "starting"
"""Stands for the id of a job that has none yet."""


@dataclass
class ComparingFailed(Message):
    """The thread that asks for the comparison met an error."""

    error: HfbenchError


class DiffScreen(BenchScreen):
    """What sets one model apart from another, in tabs; everything shown is from the result of the action `diff`."""

    help = Help(
        "Diff",
        "`[` and `]` or left and right change the tab. Headers and files are compared at once.\n"
        "`v` reads and compares all values, as a job that goes on when you leave; `J` opens its page, where it can be "
        "cancelled. `w` swaps the two sides. `y` copies the command that says the same, `Y` what is under the cursor.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "values", "values", id="diff.values"),
        Binding("left,left_square_bracket", "tab(-1)", "previous tab", show=False, id="diff.previous-tab"),
        Binding("right_square_bracket,right", "tab(1)", "next tab", id="diff.next-tab"),
        Binding("J", "job", "job", show=False, id="diff.job"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("t", "front('DiffTensorsTab')", "tensors", show=False, id="diff.tensors"),
        Binding("w", "swap", "swap", show=False, id="diff.swap"),
        Binding("y", "copy_command", "copy command", id="diff.copy"),
        Binding("Y", "copy_current", "copy name", show=False, id="diff.copy-name"),
        Binding("u", "update", "update", show=False, id="diff.update"),
    ]

    DEFAULT_CSS = """
    DiffScreen {
        & > #body > #trouble { margin-bottom: 1; }
        & > #body > ProgressLine { display: none; margin-bottom: 1; }
    }
    """

    def __init__(self, a: str, b: str) -> None:
        super().__init__()
        self.view = DiffView(a=a, b=b)
        self._asking, self._following = Background(self, ComparingFailed), Background(self, JobLost)
        self._tabs = {tab.__name__: tab(id=tab.__name__) for tab in TABS}
        self.front: DiffTab = self._tabs[SummaryTab.__name__]
        """The tab that is seen; the others are there, but not displayed."""

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return self.view.a

    @property
    def values(self) -> dict[str, object]:
        """The fields of the request, but for whether values are read."""
        cache = self.bench.config.models.cache
        values: dict[str, object] = {"a": self.view.a, "b": self.view.b}
        return values | ({"cache_dir": str(expand(cache))} if cache else {})

    @property
    def at_rest(self) -> bool:
        """Compared, no job under way, and the tab in order."""
        return super().at_rest and not self.view.busy and self.front.at_rest

    def trail(self) -> tuple[str, ...]:
        """Both models and the tab in front."""
        return ("Diff", f"{name_of(self.view.a)} with {name_of(self.view.b)}", self.front.title)

    def body(self) -> ComposeResult:
        """Tabs, progress, trouble, and one tab in front."""
        yield TabLine(self._titles(), self._title(self.front))
        yield ProgressLine()
        yield Notice(id="trouble")
        for tab in self._tabs.values():
            tab.display = tab is self.front
            yield tab

    def on_mount(self) -> None:
        """Begin to compare, and look whether a job compares the values already."""
        self.front.take_focus()
        self.action_update()
        jobs = [row.id for row in self.bench.machine.known_jobs if row.action == ACTION and not row.state.over]
        if jobs:
            self._following.start(partial(follow_running, jobs, dict(self.values)))

    def on_unmount(self) -> None:
        """Nobody looks any more; a job goes on."""
        self._asking.stop()
        self._following.stop()

    # -- comparing ------------------------------------------------------------

    def action_update(self) -> None:
        """Compare anew, by headers and files."""
        self._show(replace(self.view, result=None, differences=None, comparing=True, error=None))
        self._asking.start(partial(ask, dict(self.values)))

    def action_values(self) -> None:
        """Compare the values too, as a job."""
        if self.view.job:
            self.notify("the values are being compared; J opens the job")
            return
        self._show(replace(self.view, job=STARTING, error=None))
        request = find(ACTION).build({**self.values, "values": True})
        self.bench.start_job(request, started=self._job_started, failed=self._job_refused)

    def _job_started(self, id: str) -> None:
        if self.is_attached:
            self._following.start(partial(follow_job, id))

    def _job_refused(self, error: HfbenchError) -> None:
        if self.is_attached:
            self._show(replace(self.view, job="", phases=(), error=error))

    @on(Compared)
    def _compared(self, message: Compared) -> None:
        known = self.view.result is not None and self.view.result.values is not None
        if known and message.result.values is None:
            self._show(replace(self.view, comparing=False))  # the job was quicker, and knows more
        else:
            comparing = self.view.comparing and message.result.values is not None
            view = replace(self.view, result=message.result, differences=message.differences)
            self._show(replace(view, comparing=comparing))

    @on(JobMoved)
    def _moved(self, message: JobMoved) -> None:
        self._show(replace(self.view, job="" if message.over else message.job, phases=message.phases))

    @on(JobLost)
    def _lost(self, message: JobLost) -> None:
        self._show(replace(self.view, job="", phases=(), error=message.error))

    @on(ComparingFailed)
    def _failed(self, message: ComparingFailed) -> None:
        self._show(replace(self.view, comparing=False, error=message.error))

    # -- painting -------------------------------------------------------------

    def _show(self, view: DiffView) -> None:
        before, self.view = self.view, view
        if not self.is_mounted:
            return
        if view.error is not before.error:
            notice = self.query_one("#trouble", Notice)
            notice.show_error(view.error) if view.error else notice.clear()
        progress = self.query_one(ProgressLine)
        progress.display = bool(view.job)
        progress.show(view.phases)
        self._paint()

    def _paint(self) -> None:
        self.front.show(self.view)
        line = self.query_one(TabLine)
        line.names = tuple(self._titles())
        line.show(self._title(self.front))
        self.refresh_frame()

    def _titles(self) -> list[str]:
        return [self._title(tab) for tab in self._tabs.values()]

    def _title(self, tab: DiffTab) -> str:
        count = self.view.section(tab.section) if tab.section else 0
        return f"{tab.title} {count:,}" if count else tab.title

    # -- keys -----------------------------------------------------------------

    def action_tab(self, steps: int) -> None:
        """The next tab, or the one before; after the last comes the first."""
        tabs = list(self._tabs.values())
        self.action_front(tabs[(tabs.index(self.front) + steps) % len(tabs)].id or "")

    def action_front(self, name: str) -> None:
        """Put a tab in front."""
        self.front.display = False
        self.front = self._tabs[name]
        self.front.display = True
        self._paint()
        self.front.take_focus()
        self.refresh_bindings()

    @on(TabLine.Chosen)
    def _clicked(self, message: TabLine.Chosen) -> None:
        self.action_front(next(tab.id or "" for tab in self._tabs.values() if self._title(tab) == message.name))

    def action_job(self) -> None:
        """The page of the job that compares values."""
        if self.view.job not in ("", STARTING):
            self.bench.open_job(self.view.job)
        else:
            self.notify("no job compares these values now; v starts one")

    def action_swap(self) -> None:
        """B in place of A."""
        self.app.pop_screen()
        self.bench.open_diff(self.view.b, self.view.a)

    async def action_copy_command(self) -> None:
        """The command whose result is shown."""
        spec, values = find(ACTION), dict[str, Any](self.values)
        if self.view.job or (self.view.result is not None and self.view.result.values is not None):
            values["values"] = True
        await self.copy(command_line(["hfbench", *spec.name.split(".")], spec.params, values))

    async def action_copy_current(self) -> None:
        """The name or key under the cursor."""
        if text := self.front.copied():
            await self.copy(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`/` only where there is something to filter."""
        return action != "filter" or self.front.filters
