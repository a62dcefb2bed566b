"""What lies in a Hugging Face cache as rows of a table, and one of them as lines; no widget and no reading here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.models.problem import counted
from hfbench.units import show_ago, show_bytes
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.hub.caching.facts import CachedRepo, CacheReport, Damaged, Lock, SharedStore

LOCK_STATES: dict[str, State] = {"stale": "warn", "held": "unknown", "unknown": "unknown"}
SHOWN = 4
"""Names told of a list in one sentence."""

COLUMNS = (
    Column("repo", "Repository", flexible=True, min=18, max=60, middle=True),
    Column("kind", "Kind", priority=4),
    Column("size", "Size", align="right", min=8),
    Column("revisions", "Rev", align="right", priority=5),
    Column("files", "Files", align="right", priority=6),
    Column("shared", "Shared", align="right", priority=3),
    Column("used", "Used", align="right", priority=2),
    Column("state", "State", flexible=True, min=21, max=60),
)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What the latest job found that hashed every blob of a cache: damaged blobs that lie there unchanged since."""

    folder: str
    blobs: int
    ended: float
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KnownCache:
    """A cache as it lies there, the room on its disk, and what verifying it told; `free_bytes` None is not known."""

    report: CacheReport
    free_bytes: int | None = None
    verified: Verified | None = None

    @property
    def repos(self) -> dict[str, CachedRepo]:
        """Repositories by folder."""
        return {each.path: each for each in self.report.repos}

    @property
    def orphan_bytes(self) -> int:
        """Bytes that nothing uses."""
        store = self.report.store
        return sum(each.orphan_bytes for each in self.report.repos) + (store.unused_bytes if store else 0)

    def damaged(self, repo: CachedRepo) -> list[Damaged]:
        """The damaged blobs of a repository."""
        if self.verified is None or self.verified.folder != self.report.folder:
            return []
        return [each for each in self.verified.damaged if each.path.startswith(f"{repo.path}/")]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Something about a part of the cache: a word or two for a row, the sentence, and what to do."""

    state: State
    short: str
    found: str
    do: str = ""


def summary(known: KnownCache) -> list[str]:
    """Totals for the head of the screen, the most telling first."""
    report, stale = known.report, sum(each.state == "stale" for each in known.report.locks)
    told = [f"{len(report.repos):,} {'repository' if len(report.repos) == 1 else 'repositories'}"]
    told.append(show_bytes(report.bytes))
    told += [f"{show_bytes(known.orphan_bytes)} of orphans"] if known.orphan_bytes else []
    told += [counted(stale, "stale lock")] if stale else []
    told += [f"{show_bytes(known.free_bytes)} free"] if known.free_bytes is not None else []
    return told


def verified_words(known: KnownCache, now: float) -> str:
    """`verified 5 min ago, none damaged`; empty where nobody hashed this cache."""
    done = known.verified
    if done is None or done.folder != known.report.folder:
        return ""
    bad = f"{counted(len(done.damaged), 'blob')} damaged" if done.damaged else "none damaged"
    return f"verified {show_ago(now - done.ended)}, {bad}"


def records_of(known: KnownCache, now: float, glyphs: Glyphs) -> list[Record]:
    """Repositories by size, then the store, locks and what belongs to no repository."""
    rows = [_repo_record(each, known, now, glyphs) for each in known.report.repos]
    rows += [_store_record(known.report.store, glyphs)] if known.report.store else []
    rows += [_lock_record(each, glyphs) for each in known.report.locks]
    rows += [
        Record(
            name,
            {"repo": name, "kind": "other", "state": f"{glyphs.sign('unknown')} no repository"},
            {"state": "unknown"},
        )
        for name in known.report.strange
    ]
    return rows


def repo_advice(repo: CachedRepo, damaged: Sequence[Damaged]) -> Iterator[Advice]:
    """What is wrong with a repository, the worst first."""
    for each in damaged:
        where = f", it is {', '.join(each.files[:SHOWN])}" if each.files else ""
        yield Advice(
            state="error",
            short="damaged",
            found=f"{each.path.rpartition('/')[2][:16]}: {each.text}{where}",
            do="free the revision with d, and pull it again with p",
        )
    broken = [name for each in repo.revisions for name in each.broken]
    if broken:
        names = ", ".join(broken[:SHOWN]) + (f" and {len(broken) - SHOWN} more" if len(broken) > SHOWN else "")
        lead = "leads" if len(broken) == 1 else "lead"
        found = f"{counted(len(broken), 'link')} {lead} nowhere: {names}"
        yield Advice(state="warn", short=counted(len(broken), "broken link"), found=found, do="p pulls it again")
    if repo.unnamed:
        size = show_bytes(sum(each.bytes for each in repo.unnamed))
        found = f"{counted(len(repo.unnamed), 'blob')} that no revision names, {size}"
        yield Advice(state="warn", short=f"orphans {size}", found=found, do="O frees all orphans of the cache")
    dead = [each for each in repo.broken_downloads if not each.resumable]
    if dead:
        size = show_bytes(sum(each.bytes for each in dead))
        found = f"{counted(len(dead), 'broken-off download')} that nothing goes on with, {size}"
        yield Advice(state="warn", short=f"dead download {size}", found=found, do="O frees all orphans of the cache")
    live = [each for each in repo.broken_downloads if each.resumable]
    if live:
        size = show_bytes(sum(each.bytes for each in live))
        found = f"{counted(len(live), 'download')} cut short, {size} of it here"
        yield Advice(state="unknown", short=f"{size} of a download", found=found, do="p goes on with it")


def detail_lines(known: KnownCache, key: str, now: float, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """All that is known of a row."""
    if repo := known.repos.get(key):
        facts = [*_repo_facts(repo, known, now)]
    elif lock := next((each for each in known.report.locks if each.path == key), None):
        facts = [*_lock_facts(lock)]
    elif known.report.store and known.report.store.path == key:
        facts = [*_store_facts(known.report.store)]
    elif key in known.report.strange:
        place = f"{known.report.folder}/{key}"
        facts = [Fact("other", place), Fact("found", "belongs to no repository; clients never made it", "unknown")]
        facts.append(Fact("do", "look at it and remove it yourself: nothing here touches what it does not know"))
    else:
        facts = []
    return facts_lines(facts, width, glyphs)


def usual_snapshot(repo: CachedRepo) -> str:
    """The folder that the repository's name means: of `main`, else of the only revision; empty where neither is."""
    main = [each for each in repo.revisions if "main" in each.refs]
    [meant] = main[:1] or (repo.revisions if len(repo.revisions) == 1 else (None,))
    return f"{repo.path}/snapshots/{meant.commit}" if meant else ""


def advice_facts(advice: Sequence[Advice]) -> Iterator[Fact]:
    """What was found, each with what to do."""
    for number, each in enumerate(advice):
        yield Fact("" if number else "found", each.found, each.state)
        if each.do:
            yield Fact("do", each.do)


def _repo_record(repo: CachedRepo, known: KnownCache, now: float, glyphs: Glyphs) -> Record:
    advice = [*repo_advice(repo, known.damaged(repo))]
    state: State = advice[0].state if advice else "ok"
    more = f" +{len(advice) - 1}" if len(advice) > 1 else ""
    files = sum(each.files for each in repo.revisions)
    cells = {
        "repo": repo.repo,
        "kind": repo.kind,
        "size": show_bytes(repo.bytes),
        "revisions": f"{len(repo.revisions):,}",
        "files": f"{files:,}",
        "shared": show_bytes(repo.shared_bytes) if repo.shared_bytes else "",
        "used": show_ago(now - repo.last_used),
        "state": f"{glyphs.sign(state)} {advice[0].short}{more}" if advice else glyphs.sign("ok"),
    }
    order = {
        "size": repo.bytes,
        "revisions": len(repo.revisions),
        "files": files,
        "shared": repo.shared_bytes,
        "used": repo.last_used,
        "state": ("error", "warn", "unknown", "ok").index(state) if state else 9,
    }
    return Record(repo.path, cells, {"state": state, "kind": "muted", "used": "muted"}, order)


def _lock_record(lock: Lock, glyphs: Glyphs) -> Record:
    state = LOCK_STATES[lock.state]
    name = "/".join(lock.path.split("/")[-2:])
    cells = {"repo": name, "kind": "lock", "state": f"{glyphs.sign(state)} {lock.state} lock"}
    return Record(lock.path, cells, {"state": state, "kind": "muted"})


def _store_record(store: SharedStore, glyphs: Glyphs) -> Record:
    state: State = "warn" if store.unused_bytes else "ok"
    word = f" {show_bytes(store.unused_bytes)} unused" if store.unused_bytes else ""
    cells = {
        "repo": "shared by repositories",
        "kind": "store",
        "size": show_bytes(store.bytes),
        "files": f"{store.contents:,}",
        "state": f"{glyphs.sign(state)}{word}",
    }
    return Record(store.path, cells, {"state": state, "kind": "muted"}, {"size": store.bytes, "files": store.contents})


def _repo_facts(repo: CachedRepo, known: KnownCache, now: float) -> Iterator[Fact]:
    shared = f", {show_bytes(repo.shared_bytes)} more were its revisions not sharing" if repo.shared_bytes else ""
    yield Fact(repo.kind, f"{repo.repo}  {show_bytes(repo.bytes)}{shared}")
    yield from advice_facts([*repo_advice(repo, known.damaged(repo))])
    for number, each in enumerate(repo.revisions):
        names = ", ".join(each.refs) or "no ref"
        size = f"{show_bytes(each.bytes)}, {show_bytes(each.own_bytes)} its own"
        told = (
            f"{each.commit[:12]}  {names}, {counted(each.files, 'file')}, {size}, used {show_ago(now - each.last_used)}"
        )
        yield Fact("" if number else "revisions", told)
    yield Fact("folder", repo.path, "muted")


def _lock_facts(lock: Lock) -> Iterator[Fact]:
    yield Fact("lock", lock.path, "muted")
    yield Fact("found", f"{lock.state}: {lock.owner}", LOCK_STATES[lock.state])
    remedies = {
        "stale": "O removes it: it would keep others waiting for ever",
        "held": "wait for its owner: what it guards is not freed meanwhile",
        "unknown": "ask its machine whether the owner lives; nothing here removes it",
    }
    yield Fact("do", remedies[lock.state])


def _store_facts(store: SharedStore) -> Iterator[Fact]:
    size = f"{counted(store.contents, 'content')}, {show_bytes(store.bytes)}"
    yield Fact("store", f"{size}, kept once for all repositories of the cache")
    if store.unused_bytes:
        yield Fact("found", f"{show_bytes(store.unused_bytes)} that no repository links to", "warn")
        yield Fact("do", "O frees it")
    yield Fact("folder", store.path, "muted")
