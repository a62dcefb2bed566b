"""What the list of engines and the page of one have in common: the keys, and what they need to be read first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from hfbench.actions.registry import find
from hfbench.engines.jobs import CHECK
from hfbench.errors import HfbenchError
from hfbench.screens.base import BenchScreen
from hfbench.screens.engines_asks import CheckingFailed, EngineChecked, EngineReader, EngineShown
from hfbench.screens.engines_recipe import bench_values, model_of, rebuild_values

if TYPE_CHECKING:
    from hfbench.actions.engine_show import ShowResult
    from hfbench.engines.listing import Listed
    from hfbench.engines.manifest import Manifest

Values = Callable[["Manifest", str], dict[str, object]]


class EngineKeys(BenchScreen):
    """A screen with an engine at hand. Subclasses give `engine` and `known_changed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "check", "check", id="engines.check"),
        Binding("l", "trial", "load", id="engines.load"),
        Binding("b", "form('bench.generate')", "bench", id="engines.bench"),
        Binding("R", "form('engine.build')", "rerun", id="engines.rebuild"),
        Binding("y", "copy_path", "copy path", show=False, id="engines.copy"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.reader = EngineReader(self)
        self.checking = ""
        """The engine whose files are hashed now."""
        self.shown: dict[str, EngineShown] = {}
        """What was read of engines, by path."""
        self._wish: tuple[str, str] | None = None
        """An engine and the form asked for before its manifest was read."""

    @property
    def engine(self) -> Listed | None:
        """The engine at hand."""
        raise NotImplementedError

    def known_changed(self) -> None:
        """A check began or ended, or a manifest was read."""
        raise NotImplementedError

    def take_checked(self, listed: Listed) -> None:
        """An engine was checked again."""
        raise NotImplementedError

    @property
    def at_rest(self) -> bool:
        """Nothing is being checked, and the engine at hand was read."""
        engine = self.engine
        return super().at_rest and not self.checking and (engine is None or engine.path in self.shown)

    @property
    def takes_keys(self) -> bool:
        """Keys that follow one that waits for a manifest wait behind it."""
        return self._wish is None

    @property
    def result(self) -> ShowResult | None:
        """What was read of the engine at hand."""
        read = self.shown.get(self.engine.path) if self.engine else None
        return read.shown if read else None

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return model_of(self.result.manifest) if self.result and self.result.manifest else ""

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self.reader.stop()

    @on(EngineShown)
    def _shown(self, message: EngineShown) -> None:
        self.shown[message.path] = message
        if self._wish and self._wish[0] == message.path:
            wish, self._wish = self._wish, None
            self._open_form(message, wish[1])
        self.known_changed()

    # -- checking -------------------------------------------------------------

    def action_check(self) -> None:
        """Compare the engine with this machine again, every file hashed."""
        if self.engine:
            self.checking = self.engine.path
            self.reader.check(self.engine.path)
            self.known_changed()

    @on(EngineChecked)
    def _checked(self, message: EngineChecked) -> None:
        self.checking = ""
        self.take_checked(message.listed)
        self.known_changed()

    @on(CheckingFailed)
    def _not_checked(self, message: CheckingFailed) -> None:
        self.checking = ""
        self.known_changed()
        self.bench.complain(message.error)

    def action_trial(self) -> None:
        """Load the engine in a job, which may crash without harm."""
        if self.engine:
            self.bench.start_job(find(CHECK).build({"engine": self.engine.path, "load": True}))

    # -- forms ----------------------------------------------------------------

    def action_form(self, action: str) -> None:
        """The form of an action, filled in from the manifest, as soon as that is read."""
        engine = self.engine
        if engine is None:
            return
        if read := self.shown.get(engine.path):
            self._open_form(read, action)
        else:
            self._wish = (engine.path, action)
            self.reader.show(engine.path)

    def _open_form(self, read: EngineShown, action: str) -> None:
        values: Values = bench_values if action == "bench.generate" else rebuild_values
        if read.shown is None:
            self.bench.complain(read.error or "the engine could not be read")
        elif read.shown.manifest is None:
            found = "has no manifest, which would tell its model and shapes"
            self.bench.complain(HfbenchError(found, where=read.path, remedy="n opens an empty form"))
        else:
            self.bench.open_form(action, values(read.shown.manifest, read.path))

    async def action_copy_path(self) -> None:
        """The engine's path."""
        if self.engine:
            await self.copy(self.engine.path)
