"""The command palette: every action and every screen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from hfbench.actions.registry import actions
from hfbench.every_screen import MAIN
from hfbench.screens.model_values import values_for
from hfbench.screens.palette_match import places, score

if TYPE_CHECKING:
    from hfbench.app import Workbench


EVERYWHERE = {
    "record": ("record", "Begin to record what is started as a script, or end it"),
    "compare": ("compare models", "Choose a second model and show what sets it apart from the one in view"),
    "convert": ("convert", "Plan, write and prove a conversion of the model in view to Megatron, or back"),
    "convert(True)": ("convert another", "Choose a model, or a checkpoint of Megatron, and convert it"),
    "tour": ("tour", "A guided walk: a card says what is seen and what to press; again ends it"),
    "jump": ("jump", "Show a letter on every region that takes keys"),
    "help": ("help", "Say what is focused and which keys work"),
    "quit": ("quit", "Leave; jobs go on"),
}
"""Actions of the application that the palette offers by name."""


class Palette(Provider):
    """Actions open their form, filled with the model in view."""

    @property
    def bench(self) -> Workbench:
        """The application, by its own type."""
        return cast("Workbench", self.app)

    def entries(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """Name, what it does, and the deed."""
        model = getattr(self.screen, "chosen_model", "")
        folder = getattr(self.screen, "chosen_folder", "")
        for spec in actions().values():
            yield spec.name, spec.summary, partial(self._launch, spec.name, values_for(spec, model, folder))
        yield "search a hub", "Find models on a hub by their names", self._search_hub
        for name in MAIN:
            yield f"go to {name}", f"Show the {name} screen", partial(self.bench.action_go, name)
        for name in self.bench.theme_names():
            yield f"theme {name}", "Change the colours", partial(setattr, self.bench, "theme", name)
        if callable(best := getattr(self.screen, "action_best", None)):
            yield "best cell", "Go to the best cell of this sweep", best
        for action, (name, summary) in EVERYWHERE.items():
            yield name, summary, partial(self._run, action)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for name, summary, deed in self.entries():
            yield DiscoveryHit(name, deed, help=summary)

    async def search(self, query: str) -> Hits:
        """Those the query names, the nearest first; where there is none, the palette says so."""
        for name, summary, deed in self.entries():
            if found := score(query, name, summary):
                yield Hit(found, self._marked(name, query), deed, help=summary)

    def _marked(self, name: str, query: str) -> Content:
        """The name with the letters that were asked for."""
        shown, style = Content(name), self.matcher(query).match_style
        for at in places(query, name):
            shown = shown.stylize(style, at, at + 1)
        return shown

    def _search_hub(self) -> None:
        self.bench.action_go("models")
        self.bench.call_later(self.bench.run_action, "screen.search")

    def _run(self, action: str) -> None:
        self.bench.call_later(self.bench.run_action, action)

    def _launch(self, name: str, values: dict[str, object]) -> None:
        self.bench.open_form(name, values)
