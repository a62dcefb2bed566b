"""From what a user names to the subject of the rules: a folder, a reference, a cache folder, or one file of weights."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hfbench.checks.subject import Options, Subject
from hfbench.models.files import kind_of
from hfbench.models.problem import Problem, Severity, listed
from hfbench.models.reference import Location, NotFound, cache_folder, cached_name, resolve
from hfbench.paths import expand

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")


def find(text: str, *, cache_dir: Path | None = None, options: Options | None = None) -> Subject:
    """The subject a target names. Where nothing can be judged it carries the reason as its `trouble`.

    UsageError for an empty target or a file that is no part of a model.
    """
    given = text.strip()
    try:
        location = resolve(given, cache_dir=cache_dir)
    except NotFound as error:
        repo = given if _REPO.fullmatch(given) else None
        return troubled(Location(given, Path(given), "local", repo=repo), error.code, error.found, error.remedy)
    subject = Subject(location, only=location.only, options=options)
    if location.source == "local" and _REPO.fullmatch(given) and os.path.isdir(expand(given)):
        subject.trouble = _shadow(given, location.folder, cache_dir or cache_folder())
    return subject


def _shadow(given: str, folder: Path, cache: Path) -> Problem | None:
    """What is said of a folder with the name of a repository: nothing, where it is a model and nothing else has it."""
    names = {each.name for each in os.scandir(folder)}
    holds_model = any(kind_of(name) in ("config", "weights", "index") for name in names)
    cached = os.path.isdir(cache / cached_name(given))
    if holds_model and not cached:
        return None
    found = "a local folder of this name is taken in place of the Hub repository"
    found += ", which is in the cache" if cached else ""
    found += "" if holds_model else f"; it holds no model, only {listed(sorted(names))}"
    severity: Severity = "info" if holds_model else "error"
    return Problem(severity=severity, where=given, found=found, code="local_shadows_repo")


def troubled(location: Location, code: str, found: str, remedy: str = "") -> Subject:
    """A subject of which nothing but the reason can be told."""
    subject = Subject(location)
    subject.trouble = Problem(severity="error", where=location.given, found=found, remedy=remedy, code=code)
    return subject
