"""Reads sweeps beside the screens: the list of all, and one followed with what is seen of it from where the user is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.message_pump import MessagePump

from hfbench.errors import HfbenchError
from hfbench.paths import sweeps_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest
from hfbench.screens.sweep_sight import Look, Sight, sight_of
from hfbench.sweeps.model import SweepRow, SweepSnapshot
from hfbench.sweeps.snapshot import SweepFollower, list_sweeps

PACE = 0.3
"""Seconds between two looks at a sweep that runs: more often is not read."""
REST = 2.0
"""Seconds between two looks at what does not run, which somebody may resume elsewhere."""
PAINTED = 5_000
"""Cells of a table that may be painted anew in a second, so that keys never wait for it."""
SHARE = 8
"""Reading takes at most one in so many parts of the time."""

Post = Callable[[Message], None]


@dataclass
class SweepsListed(Latest):
    """All sweeps, the latest first, or why they cannot be listed."""

    rows: tuple[SweepRow, ...] = ()
    error: HfbenchError | None = None


@dataclass
class SweepSeen(Latest):
    """A sweep as it is now, and what is seen of it from where somebody asked to stand."""

    snapshot: SweepSnapshot
    sight: Sight
    asked: Look


@dataclass
class SweepUnread(Latest):
    """Why a sweep cannot be read."""

    error: HfbenchError


class SweepsReader:
    """Lists sweeps again and again for one screen; only a list that changed is told."""

    def __init__(self, screen: MessagePump) -> None:
        self._again = threading.Event()
        self._reading = Background(screen, lambda error: SweepsListed(error=error))

    def start(self) -> None:
        """`SweepsListed` follows, and again whenever something changed."""
        self._reading.start(self._read)

    def look_now(self) -> None:
        """Something was done to a sweep."""
        self._again.set()

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()
        self._again.set()

    def _read(self, stopped: Stopped, post: Post) -> None:
        known: tuple[SweepRow, ...] | None = None
        while not stopped():
            self._again.clear()
            began = time.monotonic()
            rows = list_sweeps(sweeps_root())
            if rows != known:
                post(SweepsListed(known := rows))
            self._again.wait(max(REST, SHARE * (time.monotonic() - began)))


class SweepReader:
    """Follows one sweep for one screen, and works out what is seen of it whenever the user looks elsewhere."""

    def __init__(self, screen: MessagePump, folder: Path) -> None:
        self._folder = folder
        self._look = Look()
        self._again = threading.Event()
        self._reading = Background(screen, SweepUnread)

    def start(self) -> None:
        """`SweepSeen` follows, and again whenever something changed."""
        self._reading.start(self._follow)

    def look(self, look: Look) -> None:
        """`SweepSeen` from there follows."""
        self._look = look
        self._again.set()

    def look_now(self) -> None:
        """Something was done to the sweep."""
        self._again.set()

    def stop(self) -> None:
        """Nobody looks any more."""
        self._reading.stop()
        self._again.set()

    def _follow(self, stopped: Stopped, post: Post) -> None:
        follower = SweepFollower(self._folder)
        told: tuple[SweepSnapshot, Look] | None = None
        while not stopped():
            self._again.clear()
            began = time.monotonic()
            if not self._folder.is_dir():
                raise HfbenchError("the sweep is gone", where=self._folder, remedy="escape goes back to the list")
            snapshot, look = follower.read(), self._look
            if told != (snapshot, look):
                told = snapshot, look
                post(SweepSeen(snapshot, sight_of(snapshot, look), look))
            pace = max(PACE, len(snapshot.cells) / PAINTED) if snapshot.state == "running" else REST
            self._again.wait(max(pace, SHARE * (time.monotonic() - began)))


def beside(screen: MessagePump, deed: Callable[[], object], done: Callable[[], Message]) -> Background:
    """Do something to a sweep in a thread; the message of `done` follows, or `Trouble`."""
    from hfbench.screens.messages import Trouble

    background = Background(screen, Trouble)
    background.start(partial(_do, deed, done))
    return background


def _do(deed: Callable[[], object], done: Callable[[], Message], stopped: Stopped, post: Post) -> None:
    deed()
    post(done())
