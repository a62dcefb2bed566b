"""Which runtimes would load the model under the cursor of the list, asked once the cursor rests there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message
from textual.timer import Timer

from hfbench.paths import expand
from hfbench.screens.background import Background

if TYPE_CHECKING:
    from hfbench.actions.resolve import ResolveResult
    from hfbench.config import ModelsConfig
    from hfbench.models.catalog import ModelEntry
    from hfbench.screens.base import BenchScreen

REST = 0.4
"""Seconds the cursor stays on a model before it is resolved: whoever scrolls past asks for nothing."""


class Loads(NamedTuple):
    """Whether any runtime loads it, and which."""

    somewhere: bool
    sentence: str


@dataclass
class Resolved(Message):
    """Which runtimes load the model of a folder; None when that could not be told."""

    folder: str
    loads: Loads | None


class Resolver:
    """Remembers what was asked of each folder, and asks for one at a time in a child process."""

    def __init__(self, screen: BenchScreen) -> None:
        self._screen = screen
        self._known: dict[str, Loads | None] = {}
        self._wanted = ""
        self._background = Background(screen, lambda error: Resolved(self._wanted, None))
        self._rest: Timer | None = None

    @property
    def busy(self) -> bool:
        """True while an answer is waited for."""
        return bool(self._wanted)

    def follow(self, entry: ModelEntry | None, config: ModelsConfig) -> Loads | None:
        """What is known of this entry, the one under the cursor; if it is nothing yet, it is asked for soon."""
        folder = str(entry.folder) if entry else ""
        wanted = "" if folder in self._known else folder
        if wanted != self._wanted:
            self._stop()
            self._wanted = wanted
            if entry and wanted:
                cache_dir = str(expand(config.cache)) if config.cache else None
                self._rest = self._screen.set_timer(REST, partial(self._ask, wanted, entry.reference, cache_dir))
        return self._known.get(folder)

    def take(self, message: Resolved) -> None:
        """An answer came; one that could not be had is left out: opening the model says why."""
        self._known[message.folder] = message.loads
        if message.folder == self._wanted:
            self._wanted = ""

    def forget(self) -> None:
        """The disk may have changed, or nobody looks any more."""
        self._stop()
        self._known, self._wanted = {}, ""

    def _ask(self, folder: str, reference: str, cache_dir: str | None) -> None:
        if not self._screen.in_front:
            self._wanted = ""  # another screen wants the machine; coming back asks again
            return
        self._background.start(lambda stopped, post: post(Resolved(folder, loads_in(reference, cache_dir, stopped))))

    def _stop(self) -> None:
        self._background.stop()
        if self._rest is not None:
            self._rest.stop()


def loads_in(reference: str, cache_dir: str | None, stopped: Callable[[], bool]) -> Loads:
    """`loads in transformers and vLLM, not in Megatron-core`.

    The action `resolve` is performed in a child process. Interrupted once `stopped` says so.
    """
    from hfbench.actions.aside import Aside

    values: dict[str, object] = {"model": reference}
    values |= {"cache_dir": cache_dir} if cache_dir else {}
    with Aside() as aside:
        return in_a_sentence(aside.ask("resolve", values, stopped))


def in_a_sentence(result: ResolveResult) -> Loads:
    """Which runtimes load it and which do not."""
    from hfbench.models.resolution.trace import joined
    from hfbench.models.runtimes import RUNTIMES, TITLES

    loads = [TITLES[each] for each in RUNTIMES if result.runtimes[each]["loads"]]
    others = [TITLES[each] for each in RUNTIMES if not result.runtimes[each]["loads"]]
    if not loads:
        return Loads(False, "no runtime loads it as it is; enter tells why")
    return Loads(True, f"loads in {joined(loads)}" + (f", not in {joined(others)}" if others else ""))
