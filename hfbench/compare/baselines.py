"""Baselines: measurements kept under a name, as copies that outlive the jobs they were taken from."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hfbench.codec import decode, encode
from hfbench.compare.metrics import number
from hfbench.compare.subject import VERSION, Subject
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.directory import ID, naming_the_folder, write_json
from hfbench.jobs.files import read_regular
from hfbench.paths import baselines_root, sweeps_root
from hfbench.text import clip, did_you_mean, printable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
LIKE_A_JOB = re.compile(rf"last|[0-9a-f]{{6}}|{ID.pattern}")
"""What stands for a job where a job or a baseline may stand."""
LONGEST = 120
"""Cells of a name that an error repeats."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """One baseline in a list. `problem` says why it cannot be used, empty otherwise."""

    name: str
    kept: float | None
    """When it was set, in seconds since the epoch."""
    of: str
    """What it was taken from: the id of a job, the name of a sweep, a file."""
    kind: str = ""
    action: str = ""
    model: str = ""
    cells: int = 0
    headline: str = ""
    host: str = ""
    problem: str = ""


def keep(name: str, subject: Subject, *, replace_it: bool) -> Path:
    """Keep a subject as a baseline; its file.

    UsageError for a name that is none, is taken or stands for a job or a sweep, or for a subject without any result.
    """
    file = file_of(name)
    _refuse_other_meaning(name)
    if not any(each.result for each in subject.measured):
        told = "; ".join(dict.fromkeys(each.reason for each in subject.measured if each.reason)) or "it has no cells"
        raise UsageError(f"{subject.given} has no result to keep: {told}", where="baseline.set")
    if file.exists() and not replace_it:
        raise UsageError(f"there is a baseline {name!r} already", where=file, remedy="give --replace to set it anew")
    with naming_the_folder(file.parent, "the folder of baselines"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"v": VERSION, "name": name, "kept": time.time(), "subject": encode(subject)})
    return file


def _refuse_other_meaning(name: str) -> None:
    """UsageError for a name that means a job or a sweep wherever a baseline may be named."""
    told = "stands for a job" if LIKE_A_JOB.fullmatch(name) else ""
    if not told and (sweeps_root() / name / "sweep.json").is_file():
        told = "is the name of a sweep"
    if told:
        raise UsageError(
            f"{name!r} {told}", where="baseline.set", remedy="take another name, so that it means one thing"
        )


def read_baseline(name: str, given: str = "") -> Subject:
    """A baseline as a subject; UsageError when there is none of that name, HfbenchError when its file is damaged."""
    data = _data(name)
    try:
        subject = decode(Subject, data["subject"])
    except (ValueError, LookupError, TypeError) as error:
        newer = isinstance(data.get("v"), int) and data["v"] > VERSION
        why = "a newer hfbench wrote this baseline" if newer else f"this baseline is damaged: {error}"
        raise HfbenchError(why, where=file_of(name), remedy="use that version, or set the baseline anew") from None
    notes = subject.notes
    if isinstance(data.get("v"), int) and data["v"] > VERSION:
        notes = (*notes, "a newer hfbench wrote this baseline; what only that one knows is left out")
    return replace(subject, given=given or name, kind="baseline", name=name, notes=notes)


def listed() -> list[Baseline]:
    """All baselines by name; one that cannot be read says why."""
    return [describe(name) for name in names()]


def describe(name: str) -> Baseline:
    """One baseline as a list shows it."""
    try:
        data, subject = _data(name), read_baseline(name)
    except HfbenchError as error:
        return Baseline(name=name, kept=None, of="", problem=error.found)
    inner = data["subject"]
    environment = next((each.environment for each in subject.measured if each.environment), subject.environment)
    return Baseline(
        name=name,
        kept=number(data.get("kept")),
        of=str(inner.get("name") or ""),
        kind=str(inner.get("kind") or ""),
        action=", ".join(subject.actions),
        model=", ".join(subject.models),
        cells=subject.cells,
        headline=subject.headline,
        host=str(environment.get("host") or ""),
    )


def must_exist(name: str) -> None:
    """UsageError when there is no baseline of that name."""
    if not file_of(name).exists():
        raise _absent(name)


def forget(name: str) -> Path:
    """Remove a baseline; UsageError when there is none of that name."""
    file = file_of(name)
    with naming_the_folder(file.parent, "the folder of baselines"):
        try:
            file.unlink()
        except FileNotFoundError:
            raise _absent(name) from None
    return file


def names() -> list[str]:
    """Names of all baselines in order; an absent folder holds none."""
    try:
        found = sorted(each.name.removesuffix(".json") for each in baselines_root().iterdir() if each.suffix == ".json")
    except OSError:
        return []
    return [each for each in found if NAME.fullmatch(each)]


def file_of(name: str) -> Path:
    """Where a baseline of that name lies; UsageError for a name that is none."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{clip(printable(name), LONGEST)!r} is no name of a baseline",
            remedy="take letters, digits, dots, dashes and underscores, at most 80, the first no dot",
        )
    return baselines_root() / f"{name}.json"


def _data(name: str) -> dict[str, Any]:
    file = file_of(name)
    try:
        data = json.loads(read_regular(file))
    except FileNotFoundError:
        raise _absent(name) from None
    except (OSError, ValueError, RecursionError) as error:
        raise HfbenchError(f"this baseline is damaged: {error}", where=file, remedy="set it anew") from None
    if not isinstance(data, dict) or not isinstance(data.get("subject"), dict):
        raise HfbenchError("this baseline is damaged: it holds no result", where=file, remedy="set it anew")
    return data


def _absent(name: str) -> UsageError:
    hint = did_you_mean(name, names()) or "hfbench baseline list shows them"
    return UsageError(f"there is no baseline {name!r}", where=baselines_root(), remedy=hint)
