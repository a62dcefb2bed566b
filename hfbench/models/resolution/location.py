"""Steps from a reference to a folder: a local path, the Hugging Face cache, the Hub."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from hfbench.errors import HfbenchError, UsageError
from hfbench.models.problem import counted, listed, quoted
from hfbench.models.reference import (
    DEFAULT_REVISION,
    DEMO,
    HubReference,
    Location,
    cache_folder,
    cached_name,
    cached_revisions,
    commit_of,
    hub_reference,
    resolve,
)
from hfbench.models.remote_mark import read_mark
from hfbench.models.resolution.subject import REPOSITORY
from hfbench.models.resolution.trace import Trace

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
YES = frozenset({"1", "on", "yes", "true"})

MOST_ABSENT = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """Where a reference led; `fault` is the sentence why it led nowhere."""

    location: Location | None
    offline: bool
    absent: frozenset[str] = frozenset()
    """Files that the cache knows the repository does not have."""
    fault: str = ""
    remedy: str = ""


def offline_by_environment() -> str:
    """The environment variable that forbids the network, empty when none does."""
    return next((name for name in OFFLINE if os.environ.get(name, "").lower() in YES), "")


def locate(text: str, trace: Trace, *, cache_dir: Path | None, offline: bool) -> Found:
    """Follow a reference and tell each place that was asked. Never raises for a reference that leads nowhere."""
    given = text.strip()
    variable = offline_by_environment()
    found = Found(None, offline or bool(variable))
    try:
        location = resolve(given, cache_dir=cache_dir)
    except HfbenchError as error:
        found = replace(found, fault=str(error), remedy=error.remedy)
        location = None
    if (named := _of_endpoint(given)) is not None and not _exists(given):
        _tell_endpoint(named, location, found, trace)
        return replace(found, location=location)
    local = location is not None and location.source == "local"
    cache = cache_dir or cache_folder()
    _tell_local(given, location, found.fault, cache, trace)
    if local or _exists(given):
        why = "a path that exists wins; no runtime falls back to the Hub"
        trace.step("cache", str(cache), "not asked", why, "skipped")
        trace.step("hub", _endpoint(), "not asked", why, "skipped")
        return replace(found, location=location)
    repo, _, revision = given.partition("@")
    absent = _tell_cache(repo, revision or DEFAULT_REVISION, location, cache, found, trace)
    _tell_hub(location, found.offline, "--offline" if offline else variable, trace)
    return replace(found, location=location, absent=absent)


def _of_endpoint(given: str) -> HubReference | None:
    """The reference, where it names an endpoint."""
    try:
        named = hub_reference(given)
    except UsageError:
        return None
    return named if named and named.endpoint else None


def _tell_endpoint(named: HubReference, location: Location | None, found: Found, trace: Trace) -> None:
    """Where a model of an endpoint was found here: whole in the cache, or opened without its weights."""
    if location is None:
        trace.step("hub", named.endpoint, "not open here", found.fault, "error")
        return
    commit = location.commit or ""
    if location.source == "cache":
        why = location.note or "the cache holds the weights of the commit that was opened"
        trace.step("cache", str(location.folder), f"{named.repo} at {commit[:12]}", why, commit=commit)
        return
    mark = read_mark(location.folder)
    left = [name for name in mark.files if not mark.holds(name)] if mark else []
    told = f"open at {commit[:12]}: {counted(len(left), 'file')} left there, of weights the headers are here"
    why = f"a runtime finds it as {named.repo} with HF_ENDPOINT={mark.url}" if mark else ""
    trace.step("hub", named.endpoint, told, why, commit=commit)


def _tell_local(given: str, location: Location | None, fault: str, cache: Path, trace: Trace) -> None:
    where = os.path.abspath(os.path.expanduser(given)) if "\0" not in given else quoted(given)
    if not _exists(given):
        if location is not None and location.source == "local":
            trace.step("local path", str(location.folder), "the demo model", "no folder of that name is in the way")
        elif fault and not REPOSITORY.fullmatch(given.partition("@")[0]):
            trace.step("local path", where, "nothing is there", fault, "error")
        else:
            trace.step("local path", where, "nothing is there", "so the reference names a repository")
        return
    if fault:
        kind = "a file" if os.path.isfile(os.path.expanduser(given)) else "a folder that cannot be used"
        trace.step("local path", where, kind, fault, "error")
        return
    if location is not None and location.note:
        kind = "a repository of a cache" if location.source == "cache" else "a file"
        why = f"{location.note}; runtimes want the folder: {location.folder}"
        trace.step("local path", where, kind, why, "warning")
        return
    shadowed, cached = "", False
    if REPOSITORY.fullmatch(given):
        cached = os.path.isdir(cache / cached_name(given))
        shadowed = f"; it shadows the Hub repository {quoted(given)}" + (", which is in the cache" if cached else "")
        if cached:
            trace.note(f"the local folder {quoted(given)} shadows the Hub repository of the same name")
    why = f"every runtime takes a path that exists as it is{shadowed}"
    if given == DEMO:
        why += "; it stands in the way of the demo model"
    trace.step("local path", where, "a folder", why, "warning" if cached else "ok")


def _tell_cache(
    repo: str, revision: str, location: Location | None, cache: Path, found: Found, trace: Trace
) -> frozenset[str]:
    folder = cache / cached_name(repo)
    where = str(folder)
    if "/" in cached_name(repo) or not os.path.isdir(folder):
        trace.step("cache", where, "the repository is not in the cache", found.remedy, "error")
        return frozenset()
    if location is None or location.commit is None:
        known = cached_revisions(folder)
        why = f"write {repo}@REVISION" if known else found.remedy
        trace.step("cache", where, _revisions(folder, revision, known), why, "error")
        return frozenset()
    ref = folder / "refs" / revision
    by = f"refs/{revision} says {location.commit[:12]}" if os.path.isfile(ref) else f"{revision} is a commit itself"
    absent = _known_absent(folder, location.commit)
    told = f"{by}; snapshots/{location.commit[:12]} is there"
    if absent:
        told += f"; {counted(len(absent), 'file')} known to be absent: {listed(sorted(absent))}"
    why = "its files are links into blobs; a file known to be absent is not asked for again"
    trace.step("cache", where, told, why, commit=location.commit, absent=sorted(absent))
    return absent


def _revisions(folder: Path, revision: str, known: list[str]) -> str:
    commits = [name for name in known if not os.path.exists(folder / "refs" / name)]
    if not known:
        return f"no ref {quoted(revision)} and no snapshot"
    told = f"no ref {quoted(revision)}; cached are {listed(known)}"
    if commits and commit_of(folder, revision) is None:
        told += "; a snapshot fetched by commit has no branch, give that commit"
    return told


def _known_absent(folder: Path, commit: str) -> frozenset[str]:
    root = folder / ".no_exist" / commit
    found = []
    try:
        for each in root.rglob("*"):
            if not each.is_dir():
                found.append(each.relative_to(root).as_posix())
            if len(found) >= MOST_ABSENT:
                break
    except OSError:
        return frozenset()
    return frozenset(found)


def _tell_hub(location: Location | None, offline: bool, by: str, trace: Trace) -> None:
    where = _endpoint()
    if offline:
        why = "what is not in the cache counts as absent, and runtimes say 'invalid repository' in place of 'offline'"
        trace.step("hub", where, f"not asked: {by} forbids the network", why, "skipped" if location else "note")
    elif location is not None:
        why = "hfbench asks no network unless told to; a runtime would ask whether the branch has moved"
        trace.step("hub", where, "not asked", why, "skipped")
    else:
        trace.step("hub", where, "not asked", "hfbench fetches nothing unless told to: use hf download", "note")


def _endpoint() -> str:
    """The Hub that is meant, without a name and a password that its address may hold."""
    given = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    scheme, mark, rest = given.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _exists(given: str) -> bool:
    try:
        return os.path.lexists(os.path.expanduser(given))
    except (OSError, ValueError):
        return False
