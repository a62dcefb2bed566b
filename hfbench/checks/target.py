"""From what a user names to the subject of the rules: a folder, a reference, a cache folder, or one file of weights."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from hfbench.checks.subject import Options, Subject
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.files import describe_file, kind_of
from hfbench.models.problem import Problem, Severity, listed
from hfbench.models.reference import (
    DEFAULT_REVISION,
    Location,
    NotCached,
    cache_folder,
    cached_name,
    cached_revisions,
    commit_of,
    resolve,
)
from hfbench.paths import expand

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")

_CACHE = "models--"


def find(text: str, *, cache_dir: Path | None = None, options: Options | None = None) -> Subject:
    """The subject a target names. Where nothing can be judged it carries the reason as its `trouble`.

    UsageError for an empty target or a file that is no part of a model.
    """
    given = text.strip()
    if not given or "\0" in given:
        raise UsageError("no model was named", remedy="give a folder, a file of weights, or a repository like org/name")
    path = expand(given)
    if not _exists(path):
        return _referred(given, cache_dir, options)
    if os.path.isdir(path):
        return _folder(given, path, options, cache_dir)
    if path.name.endswith(".index.json"):
        return _folder(given, path.absolute().parent, options, cache_dir)
    return _file(given, path, options)


def _folder(given: str, path: Path, options: Options | None, cache_dir: Path | None) -> Subject:
    if os.path.isdir(path / "snapshots") and path.absolute().name.startswith(_CACHE):
        return _cached(given, path, options)
    location = Location(given, path, "local")
    try:
        names = {each.name for each in os.scandir(path)}
    except OSError as error:
        return troubled(location, "folder_unreadable", f"the folder cannot be read ({error.strerror})")
    if not names:
        return troubled(location, "folder_empty", "the folder is empty")
    subject = Subject(location, options=options)
    holds_model = any(kind_of(name) in ("config", "weights", "index") for name in names)
    cached = os.path.isdir((cache_dir or cache_folder()) / cached_name(given))
    if _REPO.fullmatch(given) and (cached or not holds_model):  # else it is a path, and nothing stands for anything
        found = "a local folder of this name is taken in place of the Hub repository"
        found += ", which is in the cache" if cached else ""
        found += "" if holds_model else f"; it holds no model, only {listed(sorted(names))}"
        severity: Severity = "info" if holds_model else "error"
        subject.trouble = Problem(severity=severity, where=given, found=found, code="local_shadows_repo")
    return subject


def _file(given: str, path: Path, options: Options | None) -> Subject:
    entry = describe_file(path, path.parent)
    if not entry.problem and entry.kind != "weights":
        found = "this is a file, and none of weights"
        raise UsageError(found, where=path, remedy=f"give the folder: {path.absolute().parent}")
    return Subject(Location(given, path.absolute().parent, "local"), only=path.name, options=options)


def _referred(given: str, cache_dir: Path | None, options: Options | None) -> Subject:
    nowhere = Location(given, Path(given), "local", repo=given if _REPO.fullmatch(given) else None)
    try:
        return Subject(resolve(given, cache_dir=cache_dir), options=options)
    except NotCached as error:
        code = "repo_not_cached" if "revision" not in error.found else "revision_not_cached"
        return troubled(nowhere, code, error.found, error.remedy)
    except UsageError:
        raise
    except HfbenchError as error:
        return troubled(nowhere, "not_there", error.found, error.remedy)


def _cached(given: str, path: Path, options: Options | None) -> Subject:
    repo = path.absolute().name.removeprefix(_CACHE).replace("--", "/", 1)
    commit = commit_of(path, DEFAULT_REVISION)
    if commit is None:
        known = cached_revisions(path)
        remedy = f"cached are: {', '.join(known[:5])}" if known else ""
        found = f"the revision '{DEFAULT_REVISION}' is not in the cache at {path}"
        return troubled(Location(given, path, "cache", repo), "revision_not_cached", found, remedy)
    return Subject(
        Location(given, path / "snapshots" / commit, "cache", repo, DEFAULT_REVISION, commit), options=options
    )


def troubled(location: Location, code: str, found: str, remedy: str = "") -> Subject:
    """A subject of which nothing but the reason can be told."""
    subject = Subject(location)
    subject.trouble = Problem(severity="error", where=location.given, found=found, remedy=remedy, code=code)
    return subject


def _exists(path: Path) -> bool:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode) != 0
    except (OSError, ValueError):
        return False
