"""Where each workbench was left: one small file a workbench, written by rename, taken over by whoever goes on there."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hfbench
from hfbench.jobs.process import same_process, start_ticks
from hfbench.paths import state_root
from hfbench.text import printable

VERSION = 1
LARGEST = 1024 * 1024
"""Bytes of a file at most; it is a few hundred, and more where a form was typed into."""

MOST = 8
"""Files of workbenches that are gone, the newest; older ones are removed."""

DEEPEST = 32
"""Screens of one file; who goes through ever more of them by hand comes back to the first of them."""

LONGEST = 4096
"""Characters of one value, as long as a path can be."""


@dataclass(frozen=True)
class Stop:
    """One screen of those that lie on each other: its name, what it is about, and the filter that was kept there."""

    screen: str
    about: Mapping[str, str] = field(default_factory=dict)
    filter: str = ""


@dataclass(frozen=True)
class Left:
    """Where a workbench was left, from the outermost screen in; and what could not be read on the way."""

    stops: tuple[Stop, ...] = ()
    troubles: tuple[str, ...] = ()


class PlaceFile:
    """The file of this workbench. Two workbenches have two files and never meet."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_root()
        self.host, self.pid = socket.gethostname(), os.getpid()
        self.ticks = start_ticks(self.pid)
        self.path = self.folder / f"{self.host}-{self.pid}-{self.ticks}.json"

    def write(self, stops: Sequence[Stop]) -> bool:
        """Keep these; False where nothing can be written, which is no reason to stop."""
        told = {
            "v": VERSION,
            "hfbench": hfbench.__version__,
            "host": self.host,
            "pid": self.pid,
            "ticks": self.ticks,
            "at": time.time(),
            "stops": [
                {"screen": each.screen, "about": dict(each.about), "filter": each.filter} for each in stops[:DEEPEST]
            ],
        }
        made = self.path.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(made, "w", encoding="utf-8", opener=_private) as file:
                json.dump(told, file)
            os.replace(made, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                made.unlink()
            return False
        return True

    def take_over(self) -> Left:
        """Where the workbench that ended last was left, else where one that runs is now.

        The file of one that ended becomes ours, so that the next to come goes on with another.
        """
        troubles: list[str] = []
        ended: list[tuple[float, Path, dict[str, Any]]] = []
        running: list[tuple[float, Path, dict[str, Any]]] = []
        for path in _files(self.folder):
            told = _read(path, troubles)
            if told is not None and path != self.path:
                (running if same_process(told["pid"], told["ticks"]) else ended).append((told["at"], path, told))
        for _, path, told in sorted(ended, key=lambda each: each[0], reverse=True):
            try:
                os.replace(path, self.path)
            except FileNotFoundError:
                continue  # another took it in this moment
            except OSError:
                pass  # a disk that cannot be written: the place is still good
            return Left(told["stops"], tuple(troubles))
        newest = max(running, key=lambda each: each[0], default=None)
        return Left(newest[2]["stops"] if newest else (), tuple(troubles))

    def sweep(self) -> None:
        """Remove what workbenches left long before; those that run, here or elsewhere, keep theirs."""
        gone = []
        for path in _files(self.folder):
            told = _read(path, [])
            if told is not None and told["host"] == self.host and not same_process(told["pid"], told["ticks"]):
                gone.append((told["at"], path))
        for _, path in sorted(gone, reverse=True)[MOST:]:
            with contextlib.suppress(OSError):
                path.unlink()


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []


def _read(path: Path, troubles: list[str]) -> dict[str, Any] | None:
    """What a file tells, checked; None and a sentence for one that is damaged or of a newer hfbench."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            told = json.loads(file.read(LARGEST))
        if isinstance(told["v"], int) and told["v"] > VERSION:
            troubles.append(f"{path}: was left by a newer hfbench ({printable(str(told.get('hfbench')))}): passed over")
            return None
        return {
            "at": float(told["at"]),
            "host": str(told["host"]),
            "pid": int(told["pid"]),
            "ticks": int(told["ticks"]),
            "stops": tuple(map(_stop, told["stops"][:DEEPEST])),
        }
    except FileNotFoundError:
        return None
    except OSError as error:
        troubles.append(f"{path}: cannot be read: {error.strerror}")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        troubles.append(f"{path}: is damaged: passed over; it can be deleted")
    return None


def _stop(told: Mapping[str, Any]) -> Stop:
    about = told["about"]
    texts = [told["screen"], told["filter"], *about.keys(), *about.values()]
    if not all(isinstance(text, str) and len(text) <= LONGEST for text in texts):
        raise ValueError("a place is told in short texts")
    return Stop(told["screen"], dict(about), told["filter"])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
