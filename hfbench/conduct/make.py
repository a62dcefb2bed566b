"""Makes the folder of a new sweep."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hfbench
from hfbench.conduct.estimate import Estimate
from hfbench.conduct.no_room import telling_no_room
from hfbench.conduct.places import places_for
from hfbench.errors import UsageError
from hfbench.jobs.directory import naming_the_folder, write_json
from hfbench.scripts.plan import Plan
from hfbench.sweeps.folder import LATEST, NAME, VERSION, SweepFolder, sweep_folders


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep that may be made: a checked script, and how its cells are run. `slots` is cells at once at each place,
    None for what a place has."""

    name: str
    source: bytes
    plan: Plan
    on: tuple[str, ...] = ("local",)
    slots: int | None = None
    warm: bool = True
    skip_missing: bool = False
    estimate: Estimate | None = None

    @property
    def at_once(self) -> int:
        """Cells that run at once, all places together; UsageError for a place that cannot be read."""
        return min(len(self.plan.cells), sum(place.of for place in places_for(self.on, self.slots, self.plan)))


def make(root: Path, sweep: Sweep) -> SweepFolder:
    """Make the folder of a sweep; UsageError when the name is taken. Whoever sees it sees one that is whole."""
    refuse_name(root, sweep.name)
    folder = SweepFolder(root / sweep.name)
    unseen = SweepFolder(root / f".new-{sweep.name}-{secrets.token_hex(3)}")
    try:
        with telling_no_room(root), naming_the_folder(root, "the folder of sweeps"):
            unseen.path.mkdir(parents=True)
            unseen.script.write_bytes(sweep.source)
            write_json(unseen.path / "sweep.json", _about(sweep))
            _rename(unseen.path, folder.path)
    except BaseException:
        shutil.rmtree(unseen.path, ignore_errors=True)
        raise
    return folder


def refuse_name(root: Path, name: str) -> None:
    """UsageError for a name that no sweep can have, or that one has already."""
    if not NAME.fullmatch(name):
        remedy = "give letters, digits and . _ - with --name, at most 80"
        raise UsageError(f"{name!r} cannot be the name of a sweep", where="--name", remedy=remedy)
    if name in LATEST:
        remedy = "give another one with --name"
        raise UsageError(f"{name!r} stands for the latest sweep and names none", where="--name", remedy=remedy)
    if os.path.lexists(root / name):
        raise _taken(root / name)


def name_of(plan: Plan) -> str:
    """The name a sweep of a script gets unless somebody gives one."""
    return slug(plan.name)


def slug(text: str) -> str:
    """A text as the name of a sweep."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:60] or "sweep"


def free_name(root: Path, wanted: str) -> str:
    """The name, or with the first number behind it that makes it new."""
    taken = {each.name for each in sweep_folders(root)}
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return wanted if wanted not in taken else next(name for name in numbered if name not in taken)


def _about(sweep: Sweep) -> dict[str, Any]:
    estimate = sweep.estimate
    return {
        "v": VERSION,
        "name": sweep.name,
        "made": time.time(),
        "hfbench": hfbench.__version__,
        "cwd": _current_folder(),
        "on": list(sweep.on),
        "slots": sweep.slots,
        "warm": sweep.warm,
        "skip_missing": sweep.skip_missing,
        "estimate": {"cell_s": estimate.cell_s, "from": estimate.source} if estimate else None,
    }


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageError("the current folder is gone", remedy="change to a folder that exists") from error


def _rename(unseen: Path, seen: Path) -> None:
    """Give a folder its name; UsageError when somebody took it a moment ago."""
    try:
        unseen.rename(seen)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise _taken(seen) from None


def _taken(seen: Path) -> UsageError:
    remedy = f"give another one with --name, or remove that with: hfbench sweep rm {seen.name}"
    return UsageError(f"there is a sweep {seen.name!r} already", where=seen.parent, remedy=remedy)
