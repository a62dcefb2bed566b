"""The Model screen: one model, read while it is looked at."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import sleep
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.jobs.state import State
from hfbench.models.reference import NotCached, NotFound
from hfbench.paths import expand
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.engines_recipe import first_values
from hfbench.screens.later import BEHIND_MODEL, load_later
from hfbench.screens.messages import Latest
from hfbench.screens.model_judge import Judgement, judge_model
from hfbench.screens.model_reader import read_model
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.screens.model_tabs.config import ConfigTab
from hfbench.screens.model_tabs.files import FilesTab
from hfbench.screens.model_tabs.fit import FitTab
from hfbench.screens.model_tabs.overview import Overview
from hfbench.screens.model_tabs.runtimes import RuntimesTab
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.screens.model_tabs.tensors import TensorsTab
from hfbench.screens.model_tabs.tokenizer import TokenizerTab
from hfbench.screens.model_values import PUSH, push_values
from hfbench.screens.model_view import ModelView
from hfbench.screens.recent import remember
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice

TABS: tuple[type[ModelTab], ...] = (Overview, ConfigTab, TokenizerTab, TensorsTab, FilesTab, FitTab, RuntimesTab)
"""In the order of the line; a new tab is one file and one entry here."""


BREATH = 0.002
"""Seconds between two looks at whether a key was answered."""


@dataclass
class Read(Latest):
    """A fuller picture of the model."""

    view: ModelView


@dataclass
class Judged(Latest):
    """What `resolve` and `check` said so far."""

    judgement: Judgement


@dataclass
class JudgingFailed(Message):
    """The thread that asks for judgements met an error of its own."""

    error: HfbenchError


@dataclass
class ReadingFailed(Message):
    """The thread that reads met an error of its own."""

    error: HfbenchError


class ModelScreen(BenchScreen):
    """What a model is and what is wrong with it, in tabs."""

    help = Help(
        "Model",
        "`[` and `]` or left and right change the tab, `b` lists the biggest tensors, `B` measures the model, "
        "`=` compares it with another, `C` converts it to Megatron, `E` builds an engine for it, `P` pushes it to a "
        "hub, `p` pulls weights that are on a hub and not here.\n"
        "Weights are read in a process of their own: everything works while the numbers still grow.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,left_square_bracket", "tab(-1)", "previous tab", show=False, id="model.previous-tab"),
        Binding("right_square_bracket,right", "tab(1)", "next tab", id="model.next-tab"),
        Binding("p", "pull", "pull weights", id="model.pull"),
        Binding("b", "biggest", "biggest", id="model.biggest"),
        Binding("B", "bench", "bench", id="model.bench"),
        Binding("equals_sign", "app.compare", "compare", id="model.compare"),
        Binding("C", "app.convert", "convert", id="model.convert"),
        Binding("E", "engine", "build engine", show=False, id="model.engine"),
        Binding("P", "push", "push", show=False, id="model.push"),
        Binding("a", "actions", "actions", id="model.actions"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("t", "front('TensorsTab')", "tensors", show=False, id="model.tensors"),
        Binding("f", "front('FitTab')", "fit", show=False, id="model.fit"),
        Binding("y", "copy_current", "copy", id="model.copy"),
        Binding("u", "read", "update", show=False, id="model.update"),
    ]

    DEFAULT_CSS = "ModelScreen #trouble { margin-bottom: 1; }"

    def __init__(self, reference: str, tab: str = "") -> None:
        super().__init__()
        self.reference = reference
        self.view = ModelView(reference=reference)
        self._background = Background(self, ReadingFailed)
        self._judging, self._to_judge = Background(self, JudgingFailed), False
        self._pulled: int | None = None
        """Jobs that pulled this model, as far as they were seen."""
        self._tabs = {tab.__name__: tab(id=tab.__name__) for tab in TABS}
        self.front: ModelTab = self._tabs[tab or Overview.__name__]
        """The tab that is seen; the others are there, but not displayed."""
        self._seen: dict[ModelTab, ModelView] = {}
        """The picture each tab shows; the same one twice would be laid out twice."""

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return self.view.anywhere

    @property
    def chosen_folder(self) -> str:
        """Where its files are; empty until that is known, and while its weights are on a hub."""
        location = self.view.location
        return str(location.folder.absolute()) if location and location.source != "remote" else ""

    @property
    def _pullable(self) -> bool:
        """Whether a hub may have what is not here."""
        return bool(self.view.left_on) or isinstance(self.view.error, NotCached)

    @property
    def at_rest(self) -> bool:
        """Read to the end, and the table in order."""
        done = not self.view.reading and not self.view.judgement.under_way
        return super().at_rest and done and self.front.at_rest and not self.query_one(TensorsTab).table.rows.busy

    def trail(self) -> tuple[str, ...]:
        """The model and the tab in front."""
        return ("Models", self.view.name, self.front.title)

    def status(self) -> tuple[str, ...]:
        """What is read of the model stands last, where it is kept longest."""
        return (*super().status(), *filter(None, (self.view.counts,)))

    def body(self) -> ComposeResult:
        """Tabs, trouble, and one tab in front."""
        yield TabLine([tab.title for tab in TABS], self.front.title)
        yield Notice(id="trouble")
        for tab in self._tabs.values():
            tab.display = tab is self.front
            yield tab

    def on_mount(self) -> None:
        """Begin to read."""
        self.front.take_focus()
        self.action_read()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._background.stop()
        self._judging.stop()
        gc.unfreeze()

    def machine_changed(self) -> None:
        """Jobs changed: one that pulled this model has brought what was not here."""
        super().machine_changed()
        jobs = self.bench.machine.known_jobs
        pulled = sum(
            job.action == "pull" and job.model == self.reference and job.state is State.FINISHED for job in jobs
        )
        waits = self._pullable and not self.view.reading
        if self._pulled is not None and pulled > self._pulled and waits:
            self.action_read()
        self._pulled = pulled

    # -- reading --------------------------------------------------------------

    def action_read(self) -> None:
        """Read the model anew."""
        empty, cache = ModelView(reference=self.reference), self.bench.config.models.cache
        cache_dir = expand(cache) if cache else None

        def read(stopped: Stopped, post: Callable[[Message], None]) -> None:
            def show(view: ModelView) -> None:
                if view.location and view.files is None:  # the first picture after the reference was resolved
                    remember(view.anywhere)
                post(Read(view))

            def may_go_on() -> bool:
                while self.bench.answering and not stopped():
                    sleep(BREATH)
                return not stopped()

            read_model(empty, cache_dir, show, lambda: not may_go_on())

        self._judging.stop()
        self._to_judge = True
        self._show(empty)
        gc.freeze()  # a full collection would visit a million names again and again: 200 ms each at the keys
        self._background.start(read)

    def _judge(self) -> None:
        """Ask for judgements once the configuration is shown: what costs little comes first."""
        reference, cache = self.reference, self.bench.config.models.cache
        cache_dir = str(expand(cache)) if cache else None

        def judge(stopped: Stopped, post: Callable[[Message], None]) -> None:
            judge_model(reference, cache_dir, lambda judgement: post(Judged(judgement)), stopped)

        self._to_judge = False
        self._judging.start(judge)

    @on(Read)
    def _read(self, message: Read) -> None:
        self._show(replace(message.view, judgement=self.view.judgement))
        if self._to_judge and (self.view.config is not None or self.view.error is not None):
            self._judge()
        if not message.view.reading:
            load_later(BEHIND_MODEL)

    @on(Judged)
    def _judged(self, message: Judged) -> None:
        self._show(replace(self.view, judgement=message.judgement))

    @on(JudgingFailed)
    def _judging_failed(self, message: JudgingFailed) -> None:
        judgement = self.view.judgement
        troubles = (*judgement.troubles, message.error)
        self._show(replace(self.view, judgement=replace(judgement, under_way=False, troubles=troubles)))

    @on(ReadingFailed)
    def _failed(self, message: ReadingFailed) -> None:
        self._show(replace(self.view, reading=False, error=message.error))

    def _show(self, view: ModelView) -> None:
        before, self.view = self.view, view
        if view.error is not before.error:
            notice = self.query_one("#trouble", Notice)
            notice.show_error(view.error, keys=_keys_for(view.error)) if view.error else notice.clear()
            self.refresh_bindings()
        if bool(view.left_on) != bool(before.left_on):
            self.refresh_bindings()
        self._bring_up_to_date(self.front)
        self.refresh_frame()

    def _bring_up_to_date(self, tab: ModelTab) -> None:
        if self._seen.get(tab) is not self.view:
            self._seen[tab] = self.view
            tab.show(self.view)

    # -- keys -----------------------------------------------------------------

    def action_tab(self, steps: int) -> None:
        """The next tab, or the one before; after the last comes the first."""
        names = list(self._tabs)
        self.action_front(names[(names.index(type(self.front).__name__) + steps) % len(names)])

    def action_front(self, name: str) -> None:
        """Bring a tab to the front and give it the keys."""
        before, self.front = self.front, self._tabs[name]
        before.display = False
        self.front.display = True
        self.query_one(TabLine).show(self.front.title)
        self._bring_up_to_date(self.front)
        self.front.take_focus()
        self.refresh_frame()

    @on(TabLine.Chosen)
    def _clicked(self, message: TabLine.Chosen) -> None:
        self.action_front(next(tab.__name__ for tab in TABS if tab.title == message.name))

    def action_biggest(self) -> None:
        """The tensors, the largest first."""
        self.action_front(TensorsTab.__name__)
        self.query_one(TensorsTab).show_biggest()

    def action_bench(self) -> None:
        """The form of bench.generate for this model."""
        self.bench.open_form("bench.generate", {"model": self.chosen_model})

    def action_pull(self) -> None:
        """The form of pull for this model; `u` shows it whole once it is here."""
        self.bench.open_form("pull", {"model": self.reference})

    def action_push(self) -> None:
        """The form of push: this folder, and the hub it came from."""
        self.bench.open_form(PUSH, push_values(self.chosen_model, self.chosen_folder))

    def action_engine(self) -> None:
        """The form of engine.build for this model."""
        self.bench.open_form("engine.build", first_values(self.chosen_model, self.bench.config.engines.roots))

    def action_actions(self) -> None:
        """The palette."""
        self.app.action_command_palette()

    async def action_copy_current(self) -> None:
        """What the tab in front has under its cursor, else the model's path."""
        folder = self.view.location.folder.absolute() if self.view.location else self.reference
        await self.copy(self.front.copied() or str(folder))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`/` only where there is something to filter, `p` only where something was left on a hub."""
        if action == "pull":
            return self._pullable
        return action != "filter" or not self.is_mounted or self.front.filters


def _keys_for(error: HfbenchError) -> str:
    """What can be done from here about a model that was not found; nothing of one that cannot be read."""
    if isinstance(error, NotCached):
        return "p fetches it from a hub, escape goes back"
    return "escape goes back" if isinstance(error, NotFound) else ""
