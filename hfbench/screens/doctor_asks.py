"""Asks the doctor's actions in a child process, topic by topic, and keeps the last whole answer in the cache folder."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, Interrupted
from hfbench.paths import cache_root
from hfbench.screens.background import Stopped
from hfbench.widgets.doctor_rows import Known

if TYPE_CHECKING:
    from hfbench.actions.environments import KnownEnvironment
    from hfbench.doctor.result import CheckReport

MOST_BYTES = 4 << 20
FORM = 1
"""Counts up when an older hfbench would misread what is kept."""

_KEEPING = threading.Lock()

Post = Callable[[Message], None]


@dataclass
class LastKnown(Message):
    """What was found the last time, as it was kept; None when nothing is."""

    known: Known | None


@dataclass
class Examined(Message):
    """The checks of one topic, or one check; those of the topic that are not among them are no more."""

    topic: str
    checks: tuple[CheckReport, ...]
    whole: bool = True


@dataclass
class PythonsTold(Message):
    """The Pythons that actions can run in."""

    environments: tuple[KnownEnvironment, ...]


@dataclass
class ExaminedAll(Message):
    """Nothing more comes of what was asked; `error` says why something did not."""

    error: HfbenchError | None = None


def examine_all(again: bool, stopped: Stopped, post: Post) -> None:
    """Post the checks of each topic as they are made, and the Pythons; `again` asks those anew."""
    from hfbench.actions.aside import Aside
    from hfbench.doctor.check import TOPICS

    trouble: HfbenchError | None = None
    with Aside() as aside:
        for topic in TOPICS:
            try:
                post(Examined(topic, aside.ask("doctor", {"topics": [topic]}, stopped).checks))
            except Interrupted:
                return
            except HfbenchError as error:  # such as a check that crashed the child: the others are made all the same
                trouble = trouble or error
        try:
            post(PythonsTold(aside.ask("environments", {"again": again}, stopped).environments))
        except Interrupted:
            return
        except HfbenchError as error:
            trouble = trouble or error
    post(ExaminedAll(trouble))


def examine_one(id: str, stopped: Stopped, post: Post) -> None:
    """Post one check made again; an empty id asks the Pythons."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            if id:
                post(Examined("", aside.ask("doctor", {"only": [id]}, stopped).checks, whole=False))
            else:
                post(PythonsTold(aside.ask("environments", {"again": True}, stopped).environments))
        except Interrupted:
            return
        except HfbenchError as error:
            post(ExaminedAll(error))
            return
    post(ExaminedAll())


# -- what is kept -------------------------------------------------------------


def kept_file() -> Path:
    """Where the last answer is kept."""
    return cache_root() / "doctor.json"


def read_last(stopped: Stopped, post: Post) -> None:
    """Post what was kept on this host."""
    post(LastKnown(last_known(kept_file())))


def last_known(file: Path) -> Known | None:
    """What was kept; None when it is absent, damaged, of another host or of another form."""
    from hfbench.actions.environments import KnownEnvironment
    from hfbench.doctor.check import TOPICS
    from hfbench.doctor.result import CheckReport

    try:
        with open(file, "rb") as opened:
            told: Any = json.loads(opened.read(MOST_BYTES))
        if (told["form"], told["host"]) != (FORM, socket.gethostname()):
            return None
        checks = [decode(CheckReport, each) for each in told["checks"]]
        pythons = [decode(KnownEnvironment, each) for each in told["environments"]]
        return Known(
            checks={each.id: each for each in checks if each.topic in TOPICS},
            environments={each.name: each for each in pythons},
            at=float(told["at"]),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def keep_last(known: Known, stopped: Stopped, post: Post) -> None:
    """Keep an answer unless a newer one is to be kept: the newest stands at the end."""
    with _KEEPING:
        if not stopped():
            keep(known, kept_file())


def keep(known: Known, file: Path) -> bool:
    """Keep an answer, by rename; False when it never was complete or cannot be written, which harms nobody."""
    if known.at is None:
        return False
    told: Mapping[str, object] = {
        "form": FORM,
        "host": socket.gethostname(),
        "at": known.at,
        "checks": encode(list(known.checks.values())),
        "environments": encode(list(known.environments.values())),
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError:
        return False
    try:
        with open(descriptor, "w", encoding="ascii") as out:
            json.dump(told, out)
        os.replace(made, file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made)
        return False
    return True
