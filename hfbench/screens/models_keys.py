"""The keys of the Models screen: what can be done with the model under the cursor, here or on a hub."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from hfbench.screens.base import BenchScreen
from hfbench.screens.hub_pane import HubPane
from hfbench.screens.model_list import HUB
from hfbench.screens.model_look import Look
from hfbench.widgets.record_table import RecordTable


class ModelsKeys(BenchScreen):
    """A screen with sources and a hub. Subclasses give `current`, `chosen_model`, `choose_source` and `action_scan`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "search", "search hub", id="models.search"),
        Binding("B", "bench", "bench", id="models.bench"),
        Binding("f", "fit", "fit", id="models.fit"),
        Binding("equals_sign", "app.compare", "compare", id="models.compare"),
        Binding("C", "app.convert", "convert", id="models.convert"),
        Binding("a", "actions", "actions", id="models.actions"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("y", "copy_path", "copy path", id="models.copy"),
        Binding("u", "update", "update", id="models.update"),
        Binding("D", "forget", "off the recent", show=False, id="models.forget"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.endpoint = ""
        """The hub in front, empty while a source on this machine is."""
        self.default_endpoint = ""

    @property
    def hub(self) -> HubPane:
        """The models of a hub."""
        return self.query_one(HubPane)

    @property
    def current(self) -> Look | None:
        """The model of this machine under the cursor."""
        raise NotImplementedError

    @property
    def chosen_model(self) -> str:
        """A reference of the model under the cursor, wherever it is; empty where none is."""
        raise NotImplementedError

    def choose_source(self, key: str) -> None:
        """Bring a source to the front."""
        raise NotImplementedError

    def action_scan(self) -> None:
        """List all sources anew."""
        raise NotImplementedError

    def action_forget(self) -> None:
        """Take the model under the cursor off the recent ones."""
        raise NotImplementedError

    def action_fit(self) -> None:
        """The model under the cursor, at what it takes of a GPU."""
        if self.endpoint:
            self.hub.open_current("FitTab")
        elif look := self.current:
            self.bench.open_model(look.entry.reference, "FitTab")

    def action_search(self) -> None:
        """Type words to search the hub in front for, else the one that is meant where none is named."""
        if not self.endpoint and self.default_endpoint:
            self.query_one("#sources", RecordTable).move_to(f"{HUB}{self.default_endpoint}")
            self.choose_source(f"{HUB}{self.default_endpoint}")
        if self.endpoint:
            self.hub.search()

    def action_update(self) -> None:
        """What is shown, anew, by the configuration as it is now."""
        self.bench.reread_config()
        self.hub.ask_anew() if self.endpoint else self.action_scan()

    def action_back(self) -> None:
        """First stop asking a hub."""
        self.hub.stop() if self.hub.busy else super().action_back()

    def action_bench(self) -> None:
        """The form of bench.generate, filled with the model under the cursor if there is one."""
        values = {"model": self.chosen_model} if self.chosen_model else {}
        self.bench.open_form("bench.generate", values)

    def action_actions(self) -> None:
        """The palette."""
        self.app.action_command_palette()

    async def action_copy_path(self) -> None:
        """The path of the model under the cursor; of a model on a hub what means it."""
        if self.endpoint:
            if self.chosen_model:
                await self.copy(self.chosen_model)
        elif look := self.current:
            await self.copy(str(look.entry.folder.absolute()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is on a hub cannot be measured; a letter is text while words are typed."""
        if self.endpoint and (action == "bench" or (action == "filter" and self.hub.is_typing)):
            return False
        return super().check_action(action, parameters)
