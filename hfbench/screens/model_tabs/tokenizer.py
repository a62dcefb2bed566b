"""The tokenizer: what its files say, what it makes of a text, and what the chat template makes of a conversation."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from hfbench.paths import expand
from hfbench.screens.base import BenchScreen
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.screens.model_tabs.tab_line import TabLine
from hfbench.screens.model_tabs.tokenizer_chat import ChatPane
from hfbench.screens.model_tabs.tokenizer_facts import FactsPane
from hfbench.screens.model_tabs.tokenizer_text import TextPane
from hfbench.screens.model_view import ModelView
from hfbench.screens.token_desk import Desk
from hfbench.widgets.record_table import RecordTable


class TokenizerTab(ModelTab):
    """Three views of one tokenizer: facts, a text, a conversation."""

    title: ClassVar[str] = "Tokenizer"
    keys_to = RecordTable

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "type", "type text", id="tokenizer.type"),
        Binding("c", "view('Chat')", "chat", id="tokenizer.chat"),
        Binding("f", "view('Facts')", "facts", id="tokenizer.facts"),
    ]

    DEFAULT_CSS = "TokenizerTab > TabLine { margin-bottom: 0; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts, self._text, self._chat = FactsPane(), TextPane(), ChatPane()
        self._panes: dict[str, ModelTab] = {pane.title: pane for pane in (self._facts, self._text, self._chat)}
        self.front: ModelTab = self._facts
        """The view that is seen."""
        self._view: ModelView | None = None
        self._desk: Desk | None = None

    @property
    def at_rest(self) -> bool:
        """As the view in front."""
        return self.front.at_rest

    def compose(self) -> ComposeResult:
        """The names of the views, and one of them."""
        yield TabLine(list(self._panes), self.front.title, id="tokenizer-views")
        for pane in self._panes.values():
            pane.display = pane is self.front
            yield pane

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._use(None)

    def show(self, view: ModelView) -> None:
        """A model that is read anew gets a tokenizer that is loaded anew."""
        before, self._view = self._view, view
        if before is None or view.location != before.location or view.columns is not before.columns:
            cache = self._bench_cache()
            self._use(Desk(view.location.folder, expand(cache) if cache else None) if view.location else None)
        self.front.show(view)

    def copied(self) -> str:
        """What the view in front has."""
        return self.front.copied()

    def take_focus(self) -> None:
        """The view in front knows who wants the keys."""
        self.front.take_focus()

    def action_view(self, title: str) -> None:
        """Bring a view to the front and give it the keys."""
        before, self.front = self.front, self._panes[title]
        before.display = False
        self.front.display = True
        self.query_one("#tokenizer-views", TabLine).show(title)
        if self._view is not None:
            self.front.show(self._view)
        self.front.take_focus()

    def action_type(self) -> None:
        """Type a text, whichever view is in front."""
        if self.front is not self._text:
            self.action_view(self._text.title)
        self._text.action_type()

    @on(TabLine.Chosen)
    def _clicked(self, message: TabLine.Chosen) -> None:
        message.stop()
        self.action_view(message.name)

    def _use(self, desk: Desk | None) -> None:
        before, self._desk = self._desk, desk
        if before is not None:
            before.close()
        self._text.use(desk)
        self._chat.use(desk)

    def _bench_cache(self) -> str:
        screen: DOMNode = self.screen
        return (screen.bench.config.models.cache if isinstance(screen, BenchScreen) else None) or ""
