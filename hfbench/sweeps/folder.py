"""A sweep's folder: its files, who conducts it, and the lines that are appended to it."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.directory import held
from hfbench.jobs.files import open_regular, read_regular
from hfbench.text import did_you_mean

VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
KINDS = ("conductor", "planned", "step", "ended", "again")
"""What a line of the journal tells of."""
LATEST = ("last", "@")
"""What stands for the latest sweep."""
CHUNK = 1 << 20


class SweepsFolderError(HfbenchError):
    """The folder of sweeps cannot be read or written."""


class NoSuchSweep(UsageError):
    """No sweep has that name."""


@dataclass(frozen=True)
class SweepFolder:
    """Paths of one sweep. Holds no state: every question is answered by looking."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name is the sweep's."""
        return self.path.name

    @property
    def script(self) -> Path:
        """The sweep as a script: `hfbench --script` runs the same cells."""
        return self.path / "sweep.hfb.yaml"

    @property
    def journal(self) -> Path:
        """What the conductor did, a JSON object a line."""
        return self.path / "journal.jsonl"

    @property
    def results(self) -> Path:
        """The events a script's replay writes, each with the number of its cell."""
        return self.path / "results.jsonl"

    @property
    def log(self) -> Path:
        """Standard output and error of the conductor."""
        return self.path / "output.log"

    @property
    def lock(self) -> Path:
        """Held by the live conductor."""
        return self.path / "lock"

    @property
    def cancelled(self) -> Path:
        """There once somebody asked the sweep to stop."""
        return self.path / "cancel.json"

    @cached_property
    def about(self) -> dict[str, Any]:
        """sweep.json; empty when it is absent or damaged."""
        try:
            data = json.loads(read_regular(self.path / "sweep.json"))
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    @property
    def newer(self) -> bool:
        """Whether a newer hfbench made it, in a form that this one may not know."""
        version = self.about.get("v")
        return isinstance(version, (int, float)) and version > VERSION

    def conducted(self) -> bool:
        """True while a conductor holds the lock."""
        return held(self.lock)


class LineTail:
    """The JSON objects of a file of lines as they are appended; torn last lines wait, foreign ones are skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """The objects appended since the last call; none while the file is absent."""
        try:
            fd = open_regular(self.path)
        except OSError:
            return
        torn = b""
        try:
            while chunk := os.pread(fd, CHUNK, self.offset + len(torn)):
                *lines, torn = (torn + chunk).split(b"\n")
                for line in lines:
                    self.offset += len(line) + 1
                    try:
                        data = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(data, dict):
                        yield data
        finally:
            os.close(fd)


def sweep_folders(root: Path) -> list[SweepFolder]:
    """All sweeps below a root by name; an absent root holds none. A link, and what is being made, is no sweep."""
    try:
        with os.scandir(root) as entries:
            named = [each.name for each in entries if NAME.fullmatch(each.name) and each.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SweepsFolderError(f"the folder of sweeps cannot be read: {error.strerror}", where=root) from error
    return [SweepFolder(root / name) for name in sorted(named)]


def newer_line(line: Mapping[str, Any]) -> bool:
    """Whether a newer hfbench wrote a line of the journal, in a form that this one may not know."""
    version, kind = line.get("v"), line.get("kind")
    return (isinstance(version, (int, float)) and version > VERSION) or (isinstance(kind, str) and kind not in KINDS)


def find_sweep(root: Path, name: str) -> SweepFolder:
    """The sweep of that name, or the one whose name alone begins so; `last` is the latest unless an old one is called
    so. NoSuchSweep otherwise."""
    known = sweep_folders(root)
    for each in known:
        if each.name == name:
            return each
    if name in LATEST and known:
        return max(known, key=lambda each: made(each))
    if len(begun := [each for each in known if name and each.name.startswith(name)]) == 1:
        return begun[0]
    if begun:
        told = ", ".join(each.name for each in begun[:5])
        raise NoSuchSweep(f"{len(begun)} sweeps begin with {name!r}: {told}", where=root, remedy="type more of one")
    hint = did_you_mean(name, (each.name for each in known)) or "hfbench sweep list shows them"
    raise NoSuchSweep(f"there is no sweep {name!r}", where=root, remedy=hint)


def made(sweep: SweepFolder) -> float:
    """When it was made, in seconds since the epoch: by sweep.json, else by its folder."""
    told = sweep.about.get("made")
    try:
        if isinstance(told, (int, float)) and not isinstance(told, bool) and math.isfinite(told):
            return float(told)
    except OverflowError:  # a whole number that is larger than any time
        pass
    try:
        return sweep.path.stat().st_mtime
    except OSError:
        return 0.0
