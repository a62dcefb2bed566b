"""The engines in some folders, each with what the rules say of it here; nothing is hashed and nothing loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hfbench.engines.check import How, Machines, check_engine
from hfbench.engines.checked import Checked
from hfbench.engines.manifest import MANIFEST
from hfbench.engines.reading.recognise import ENDINGS
from hfbench.engines.reading.trtllm import looks_like_trtllm
from hfbench.engines.trial.remembered import Trials, Tried, last_change
from hfbench.errors import HfbenchError

DEEPEST = 3
"""Levels below a folder that are looked into."""

MOST = 10_000
"""Entries looked at below one folder."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One engine of a list. `trouble` stands in place of a check where its files cannot be read."""

    path: str
    verdict: str
    """That of the check, or `damaged`."""
    checked: Checked | None = None
    trouble: str = ""
    tried: Tried | None = None
    """The latest trial load on this machine, of the files as they are."""
    changed: float = 0.0
    """When its files were changed last, in seconds since the epoch."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A folder that could not be looked into, or not to its end. `root` is the one that was asked for."""

    root: str
    folder: str
    found: str

    @property
    def sentence(self) -> str:
        """Which, and why."""
        return f"{self.folder}: {self.found}"


def list_engines(roots: Iterable[Path], *, unread: Callable[[Unread], None] = lambda each: None) -> list[Listed]:
    """The engines below folders, each once, by path; `unread` is told the folders that could not be looked into."""
    found: dict[str, Path] = {}
    for root in roots:

        def tell(folder: Path, why: str, root: Path = root) -> None:
            unread(Unread(root=str(root), folder=str(folder), found=why))

        found |= {os.path.realpath(path): path for path in find_engines(root, unread=tell)}
    how = How(hashing=False)
    machines = Machines(how)
    with Trials() as trials:
        return [_listed(path, how, machines, trials) for path in sorted(found.values())]


def find_engines(root: Path, *, unread: Callable[[Path, str], None] = lambda folder, why: None) -> Iterator[Path]:
    """Folders with a manifest or with ranks of TensorRT-LLM, and files that end as engines do; hidden ones are left
    out, as builds under way are."""
    left = MOST
    pending = [(root, 0)]
    while pending:
        folder, depth = pending.pop()
        if os.path.lexists(folder / MANIFEST) or looks_like_trtllm(folder):
            yield folder
            continue
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            unread(folder, f"cannot be looked into ({error.strerror})")
            continue
        except ValueError:
            unread(folder, "is no name of a folder")
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                unread(root, f"holds more than {MOST:,} files and folders, of which the others were not looked at")
                return
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < DEEPEST:
                    pending.append((folder / entry.name, depth + 1))
            elif entry.name.endswith(ENDINGS) and not entry.name.endswith(".xml"):
                yield folder / entry.name


def _listed(path: Path, how: How, machines: Machines, trials: Trials) -> Listed:
    try:
        checked = check_engine(path, how, machines=machines)
    except HfbenchError as error:
        return listed_of(path, trials, trouble=str(error))
    return listed_of(path, trials, checked)


def listed_of(path: Path, trials: Trials, checked: Checked | None = None, *, trouble: str = "") -> Listed:
    """An engine that was checked, or what kept it from being checked, with what is remembered of it."""
    verdict = checked.verdict if checked else "damaged"
    tried, changed = trials.latest(path), last_change(path)
    return Listed(path=str(path), verdict=verdict, checked=checked, trouble=trouble, tried=tried, changed=changed)
