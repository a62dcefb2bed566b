"""The Model screen: one model, read while it is looked at."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher

from hfbench.errors import HfbenchError
from hfbench.paths import expand
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.messages import Latest
from hfbench.screens.model_reader import read_model
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.screens.model_tabs.config import ConfigTab
from hfbench.screens.model_tabs.files import FilesTab
from hfbench.screens.model_tabs.overview import Overview
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.screens.model_tabs.tensors import TensorsTab
from hfbench.screens.model_tabs.tokenizer import TokenizerTab
from hfbench.screens.model_view import ModelView
from hfbench.screens.recent import remember
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice

TABS: tuple[type[ModelTab], ...] = (Overview, ConfigTab, TokenizerTab, TensorsTab, FilesTab)
"""In the order of the line; a new tab is one file and one entry here."""


@dataclass
class Read(Latest):
    """A fuller picture of the model."""

    view: ModelView


@dataclass
class ReadingFailed(Message):
    """The thread that reads met an error of its own."""

    error: HfbenchError


class ModelScreen(BenchScreen):
    """What a model is and what is wrong with it, in tabs."""

    help = Help(
        "Model",
        "`[` and `]` or left and right change the tab, `b` lists the biggest tensors, `B` measures the model.\n"
        "Weights are read in a process of their own: everything works while the numbers still grow.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,left_square_bracket", "tab(-1)", "previous tab", show=False, id="model.previous-tab"),
        Binding("right_square_bracket,right", "tab(1)", "next tab", id="model.next-tab"),
        Binding("b", "biggest", "biggest", id="model.biggest"),
        Binding("B", "bench", "bench", id="model.bench"),
        Binding("a", "actions", "actions", id="model.actions"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("t", "front('TensorsTab')", "tensors", show=False, id="model.tensors"),
        Binding("y", "copy_current", "copy", id="model.copy"),
        Binding("u", "read", "update", show=False, id="model.update"),
    ]

    DEFAULT_CSS = "ModelScreen ContentSwitcher { height: 1fr; } ModelScreen #trouble { margin-bottom: 1; }"

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference
        self.view = ModelView(reference=reference)
        self._background = Background(self, ReadingFailed)

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return self.view.anywhere

    @property
    def at_rest(self) -> bool:
        """Read to the end, and the table in order."""
        return super().at_rest and not self.view.reading and not self.query_one(TensorsTab).table.rows.busy

    def trail(self) -> tuple[str, ...]:
        """The model and the tab in front."""
        return ("Models", self.view.name, self.front.title if self.is_mounted else Overview.title)

    def status(self) -> tuple[str, ...]:
        """What is read of the model stands last, where it is kept longest."""
        return (*super().status(), *filter(None, (self.view.counts,)))

    def body(self) -> ComposeResult:
        """Tabs, trouble, and one tab in front."""
        yield TabLine([tab.title for tab in TABS], Overview.title)
        yield Notice(id="trouble")
        with ContentSwitcher(initial=Overview.__name__):
            for tab in TABS:
                yield tab(id=tab.__name__)

    def on_mount(self) -> None:
        """Begin to read."""
        self.front.take_focus()
        self.action_read()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._background.stop()
        gc.unfreeze()

    @property
    def front(self) -> ModelTab:
        """The tab in front."""
        switcher = self.query_one(ContentSwitcher)
        return switcher.get_child_by_id(switcher.current or Overview.__name__, ModelTab)

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

            read_model(empty, cache_dir, show, stopped)

        self._show(empty)
        gc.freeze()  # a full collection would visit a million names again and again: 200 ms each at the keys
        self._background.start(read)

    @on(Read)
    def _read(self, message: Read) -> None:
        self._show(message.view)

    @on(ReadingFailed)
    def _failed(self, message: ReadingFailed) -> None:
        self._show(replace(self.view, reading=False, error=message.error))

    def _show(self, view: ModelView) -> None:
        before, self.view = self.view, view
        if view.error is not before.error:
            notice = self.query_one("#trouble", Notice)
            notice.show_error(view.error) if view.error else notice.clear()
        self.front.show(view)
        self.refresh_frame()

    # -- keys -----------------------------------------------------------------

    def action_tab(self, steps: int) -> None:
        """The next tab, or the one before; after the last comes the first."""
        names = [tab.__name__ for tab in TABS]
        self.action_front(names[(names.index(type(self.front).__name__) + steps) % len(names)])

    def action_front(self, name: str) -> None:
        """Bring a tab to the front and give it the keys."""
        self.query_one(ContentSwitcher).current = name
        self.query_one(TabLine).show(self.front.title)
        self.front.show(self.view)
        self.front.take_focus()
        self.refresh_frame()
        self.refresh_bindings()

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

    def action_actions(self) -> None:
        """The palette."""
        self.app.action_command_palette()

    async def action_copy_current(self) -> None:
        """What the tab in front has under its cursor, else the model's path."""
        folder = self.view.location.folder.absolute() if self.view.location else self.reference
        await self.copy(self.front.copied() or str(folder))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`/` only where there is something to filter."""
        return action != "filter" or not self.is_mounted or self.front.filters
