"""Brings a model of a hub into the cache or a folder: chosen by runtime, sized before it starts, resumed, verified."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import endpoint as endpoint_of
from hfbench.hub.facts import HubFile
from hfbench.hub.plan import Plan, plan
from hfbench.hub.pulling.content import Tally, Wish, WrongBytes
from hfbench.hub.pulling.crew import Crew
from hfbench.hub.pulling.facts import Pulled, PulledFile, Skipped, State
from hfbench.hub.pulling.fetch import Source
from hfbench.hub.pulling.gauge import Gauge
from hfbench.hub.pulling.leftovers import explain_orphans, forget_changed
from hfbench.hub.pulling.places import CachePlace, FolderPlace, Place, free_bytes
from hfbench.jobs.run import Run
from hfbench.models.reference import HubReference, cache_folder, hub_reference
from hfbench.units import show_bytes


def asked_for(model: str, endpoint: str = "", revision: str = "") -> tuple[HubReference, str, str]:
    """A reference with its endpoint and revision, each from the reference or given beside it; UsageError where the two
    differ or it names no repository."""
    named = hub_reference(model)
    if named is None or "/" not in named.repo:
        raise UsageError(f"{model!r} names no model of a hub", remedy="write org/name, or ENDPOINT:org/name@revision")
    if endpoint and named.endpoint and endpoint != named.endpoint:
        raise UsageError(f"the model is of {named.endpoint}, and --endpoint says {endpoint}", where=model)
    if revision and "@" in model and revision != named.revision:
        raise UsageError(f"the model is at {named.revision}, and --revision says {revision}", where=model)
    if revision and hub_reference(f"{named.repo}@{revision}") is None:
        raise UsageError(f"{revision!r} is not a revision", remedy="give a branch, a tag or a commit")
    return named, named.endpoint or endpoint, revision or named.revision


@dataclass(frozen=True, slots=True)
class _Errand:
    """What a pull is to bring, and where to, before it starts."""

    client: HubClient
    repo: str
    revision: str
    commit: str
    listed: Sequence[HubFile]
    chosen: Plan
    place: Place
    absent: Sequence[HubFile]
    """Chosen files that are not at their place."""

    @property
    def contents(self) -> list[HubFile]:
        """One file for each content that is not here under any name."""
        return list({each.etag: each for each in self.absent if not self.place.holds(each)}.values())


def pull(
    model: str,
    run: Run,
    *,
    endpoint: str = "",
    revision: str = "",
    wish: Wish | None = None,
    cache: Path | None = None,
    to: Path | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> Pulled:
    """Bring a model, and say what was done.

    HubError and its kinds when the hub refuses, HfbenchError when the disk has no room or what came is wrong. What
    was fetched before an error stays and is gone on with.
    """
    wish, began = wish or Wish(), time.monotonic()
    named, at, revision = asked_for(model, endpoint, revision)
    notes: list[str] = []

    def say(text: str, level: str = "warning") -> None:
        if level == "warning":
            notes.append(text)
        run.log(text, level)

    client, cache = HubClient(endpoint_of(at), warn=say), cache or cache_folder()

    def place_of(commit: str) -> Place:
        if to is None:
            return CachePlace(cache, named.repo, commit)
        return FolderPlace(Path(os.path.abspath(to)), cache, commit, replace=replace, look_only=dry_run)

    errand = _errand(client, named.repo, revision, wish, place_of, run, say)
    contents = errand.contents
    gauge, tally = Gauge(run, sum(each.size for each in contents)), Tally()
    if not dry_run:
        tally = _run(errand, contents, gauge, wish, run, say)
    chosen = errand.chosen
    return Pulled(
        model=model,
        repo=named.repo,
        endpoint=client.endpoint.name,
        url=client.endpoint.url,
        revision=revision,
        commit=errand.commit,
        folder=str(errand.place.snapshot),
        runtime=chosen.runtime,
        quant=chosen.quant,
        files=_told(chosen.files, errand.absent, dry_run=dry_run),
        skipped=tuple(Skipped(why=each.why, files=each.files, bytes=each.bytes) for each in chosen.left_out),
        bytes=chosen.bytes,
        wanted_bytes=gauge.total,
        fetched_bytes=gauge.fetched,
        resumed_bytes=tally.resumed_bytes,
        copied_bytes=tally.copied_bytes,
        restarted=tuple(tally.restarted),
        seconds=time.monotonic() - began,
        dry_run=dry_run,
        notes=tuple(notes),
    )


def _errand(
    client: HubClient,
    repo: str,
    revision: str,
    wish: Wish,
    place_of: Callable[[str], Place],
    run: Run,
    say: Callable[[str, str], None],
) -> _Errand:
    """Ask the hub what there is, choose, and look what is here already."""
    commit = client.info(repo, revision).commit
    listed = client.files(repo, commit)
    _require_sane(listed, repo)
    chosen = plan(listed, runtime=wish.runtime, include=wish.include, exclude=wish.exclude, quant=wish.quant)
    place = place_of(commit)
    if wish.verify and isinstance(place, CachePlace):
        _read_again(place, chosen, run, say)
    absent = [each for each in chosen.files if not place.has(each)]
    return _Errand(client, repo, revision, commit, listed, chosen, place, absent)


def _read_again(place: CachePlace, chosen: Plan, run: Run, say: Callable[[str, str], None]) -> None:
    """Read what is here of the chosen files, and tell which are to be fetched again."""
    done = 0
    for each in chosen.files:
        if not place.read_again(each):
            say(f"{each.path} is damaged here: it is fetched again", "warning")
        done += each.size
        run.progress("verify", done, chosen.bytes, "B")


def _run(
    errand: _Errand, contents: Sequence[HubFile], gauge: Gauge, wish: Wish, run: Run, say: Callable[[str, str], None]
) -> Tally:
    """Fetch what is missing, and let the revision mean it once all of it is there."""
    place = errand.place
    _announce(errand.chosen, len(contents), gauge.total, run)
    if isinstance(place, CachePlace):
        forget_changed(place, errand.listed, say)
        explain_orphans(place, say)
    _require_room(place, contents)
    crew = Crew(place, Source(errand.client, errand.repo, errand.commit), gauge, wish, say)
    tally = _brought(crew, errand.absent, place, gauge, say)
    if isinstance(place, CachePlace):
        place.finish(errand.revision)
    return tally


def _brought(
    crew: Crew, absent: Sequence[HubFile], place: Place, gauge: Gauge, say: Callable[[str, str], None]
) -> Tally:
    """Let the crew work; an error tells what stays of it."""
    try:
        return crew.bring(absent)
    except HfbenchError as error:
        kept = gauge.fetched + crew.tally.resumed_bytes
        if kept and not isinstance(error, WrongBytes):
            say(f"{show_bytes(kept)} are kept below {place.top}: pull again, and it goes on there", "warning")
        raise


def _require_sane(files: Sequence[HubFile], repo: str) -> None:
    """HfbenchError for a listing that does not tell what its files must be, or that names files of git: a program
    named in `.git/config` would be run by the next git command in the folder."""
    for each in files:
        if not each.etag:
            found = f"the hub does not tell the hash of {each.path!r}"
            raise HfbenchError(found, where=repo, remedy="nothing was fetched: what cannot be verified is not taken")
        if any(part.lower() == ".git" for part in each.path.split("/")):
            raise HfbenchError(f"the listing names {each.path!r}, which belongs to git", where=repo, remedy=_HOSTILE)

    paths = {each.path for each in files}
    for path in sorted(paths):
        if inner := next((str(above) for above in PurePosixPath(path).parents if str(above) in paths), ""):
            found = f"the listing names {inner!r} as a file and as the folder of {path!r}"
            raise HfbenchError(found, where=repo, remedy=_HOSTILE)


_HOSTILE = "nothing was fetched: ask whoever runs this hub"


def _require_room(place: Place, wanted: Sequence[HubFile]) -> None:
    """HfbenchError when the disk cannot hold what is missing."""
    total = there = 0
    for each in wanted:
        total += each.size
        part, _ = place.part(each)
        with contextlib.suppress(OSError):
            there += min(os.stat(part).st_blocks * 512, each.size)
    free, needed = free_bytes(place.top), total - there
    if needed > free:
        raise HfbenchError(
            f"{show_bytes(needed)} are missing, and the disk has {show_bytes(free)} free",
            where=place.top,
            remedy="free some (hfbench cache), or name another disk with --cache-dir or --to",
        )


def _announce(chosen: Plan, contents: int, total: int, run: Run) -> None:
    what = f" for {chosen.runtime}" if chosen.runtime else ""
    kind = f", {chosen.quant}" if chosen.quant else ""
    run.log(
        f"{len(chosen.files)} files{what}{kind}, {show_bytes(chosen.bytes)}; to fetch: {contents}, {show_bytes(total)}"
    )


def _told(files: Sequence[HubFile], absent: Sequence[HubFile], *, dry_run: bool) -> tuple[PulledFile, ...]:
    missing = {each.path for each in absent}
    after: State = "wanted" if dry_run else "fetched"
    return tuple(
        PulledFile(path=each.path, bytes=each.size, etag=each.etag, state=after if each.path in missing else "here")
        for each in files
    )
