"""Asks child processes about a hub for the Registry screen: what it holds, its traffic, and changes of its tokens."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.message import Message

from hfbench.actions.registry import find
from hfbench.errors import HfbenchError, Interrupted, error_from_parts
from hfbench.screens.background import Stopped
from hfbench.screens.messages import Latest

if TYPE_CHECKING:
    from hfbench.actions.registry_show import RegistryView, Traffic

SHOW, ENV = "registry.show", "env"
POLL = 2.0
"""Seconds between two looks at the counters."""
NAP = 0.1
LONGEST = 60.0
"""Seconds for a change of the tokens; another process may hold the database that long."""

Post = Callable[[Message], None]


@dataclass
class RegistryShown(Latest):
    """The hub, or why it could not be read."""

    view: RegistryView | None = None
    error: HfbenchError | None = None


@dataclass
class TrafficSeen(Message):
    """What the workers counted up to now; `at` is of time.monotonic."""

    traffic: Traffic
    at: float


@dataclass
class Ignored(Message):
    """Nothing came of a look at the counters: the hub itself tells the trouble."""


@dataclass
class TokenMade(Message):
    """A new token, or why there is none. The secret is in no other place of this process."""

    user: str
    secret: str = ""
    error: HfbenchError | None = None


@dataclass
class TokenRevoked(Message):
    """A token lets nobody in any more, or why it still does."""

    id: int
    error: HfbenchError | None = None


@dataclass
class EnvTold(Message):
    """The lines that lead stock clients to the hub, or why there are none."""

    lines: tuple[str, ...] = ()
    error: HfbenchError | None = None


def show_registry(folder: str, stopped: Stopped, post: Post) -> None:
    """Post what a hub holds; MissingError where the extra is not installed or there is no hub."""
    from hfbench.actions.aside import Aside

    find(SHOW).require()
    with Aside() as aside:
        try:
            view = aside.ask(SHOW, {"folder": folder}, stopped)
        except Interrupted:
            return
    post(RegistryShown(view))


def watch_traffic(folder: str, stopped: Stopped, post: Post) -> None:
    """Post the counters every few seconds until nobody looks any more."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        while not stopped():
            try:
                view = aside.ask(SHOW, {"folder": folder, "only_traffic": True}, stopped)
            except Interrupted:
                return
            post(TrafficSeen(view.traffic, time.monotonic()))
            end = time.monotonic() + POLL
            while time.monotonic() < end and not stopped():
                time.sleep(NAP)


def make_token(folder: str, user: str, scope: str, lasts: str, stopped: Stopped, post: Post) -> None:
    """Make a token by the command line's own command, and post it."""
    more = ["--expires", lasts] if lasts else []
    told = administer(folder, ["token", "create", user, "--scope", scope, "--name", "workbench", *more])
    post(TokenMade(user, told["token"]))


def revoke_token(folder: str, id: int, stopped: Stopped, post: Post) -> None:
    """Revoke a token by the command line's own command, and post that."""
    administer(folder, ["token", "revoke", str(id)])
    post(TokenRevoked(id))


def tell_env(url: str, stopped: Stopped, post: Post) -> None:
    """Post what `hfbench env` prints for an address."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            post(EnvTold(aside.ask(ENV, {"endpoint": url}, stopped).exports))
        except Interrupted:
            return


def administer(folder: str, words: Sequence[str]) -> Any:
    """What `hfbench registry WORDS` prints as JSON; raises what it refuses with."""
    command = [sys.executable, "-P", "-m", "hfbench", "registry", *words, "--folder", folder, "--json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise HfbenchError(f"no answer within {LONGEST:.0f} s", where="registry", remedy="try again") from None
    try:
        told = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise HfbenchError(lines[-1] if lines else f"ended with status {done.returncode}", where="registry") from None
    if isinstance(told, dict) and "error" in told:
        raise error_from_parts(told["error"])
    return told
