"""Asks the engine actions in child processes for the screens: the list, one engine's manifest, a check of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError, Interrupted
from hfbench.screens.background import Background, Stopped
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.messages import Latest

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from hfbench.actions.aside import Aside
    from hfbench.actions.engine_show import ShowResult
    from hfbench.engines.listing import Listed, Unread

LOG_LINES = 5_000

Post = Callable[[Message], None]


@dataclass
class EnginesListed(Latest):
    """The engines there are, by path, or why they could not be listed."""

    engines: tuple[Listed, ...] = ()
    unread: tuple[Unread, ...] = ()
    error: HfbenchError | None = None


@dataclass
class EngineShown(Message):
    """The manifest and the log of an engine, or why they could not be read."""

    path: str
    shown: ShowResult | None
    error: HfbenchError | None = None


@dataclass
class EngineChecked(Message):
    """An engine checked again, its files hashed."""

    listed: Listed


@dataclass
class CheckingFailed(Message):
    """The thread that checks met an error of its own."""

    error: HfbenchError


def list_engines(roots: Sequence[str], stopped: Stopped, post: Post) -> None:
    """Post the engines below these folders, as `engine.list` tells them."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            result = aside.ask("engine.list", {"roots": list(roots)}, stopped)
        except Interrupted:
            return
        post(EnginesListed(result.engines, result.unread))


def check_again(path: str, stopped: Stopped, post: Post) -> None:
    """Post what `engine.check` says of an engine, every file of it hashed."""
    from hfbench.actions.aside import Aside
    from hfbench.engines.listing import listed_of
    from hfbench.engines.trial.remembered import Trials

    with Aside() as aside, Trials() as trials:
        try:
            checked = aside.ask("engine.check", {"engine": path}, stopped)
        except Interrupted:
            return
        except HfbenchError as error:
            post(EngineChecked(listed_of(Path(path), trials, trouble=str(error))))
        else:
            post(EngineChecked(listed_of(Path(path), trials, checked)))


class EngineReader:
    """Reads manifests and logs of the engines asked for last, and checks one at a time, for one screen."""

    def __init__(self, screen: MessagePump) -> None:
        self._aside: Aside | None = None
        self._gone = False
        self._reading = LatestWins(screen, self._show, lambda error: EngineShown("", None, error))
        self._checking = Background(screen, CheckingFailed)

    def show(self, path: str) -> None:
        """`EngineShown` follows, unless another path is asked for meanwhile."""
        self._reading.ask(path)

    def check(self, path: str) -> None:
        """`EngineChecked` follows, unless another check begins."""
        self._checking.start(lambda stopped, post: check_again(path, stopped, post))

    def stop(self) -> None:
        """Nobody looks any more."""
        self._gone = True
        self._reading.stop()
        self._checking.stop()
        if self._aside is not None:
            self._aside.close()

    def _show(self, path: str) -> Message:
        """In the thread of answers: its child stays for the next one."""
        from hfbench.actions.aside import Aside

        self._aside = self._aside or Aside()
        try:
            return EngineShown(path, self._aside.ask("engine.show", {"engine": path, "log": LOG_LINES}, self._is_gone))
        except HfbenchError as error:
            return EngineShown(path, None, error)

    def _is_gone(self) -> bool:
        return self._gone
