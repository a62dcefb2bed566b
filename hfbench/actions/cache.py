"""cache: what is in the Hugging Face cache, by repository and revision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.hub.caching.facts import CachedRepo, CacheReport
from hfbench.line_width import cut, paragraph, room
from hfbench.models.problem import counted
from hfbench.text import clip_middle, printable
from hfbench.units import show_ago, show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

NAME = 40
SHOWN_REVISIONS = 5


@dataclass(frozen=True, kw_only=True)
class CacheResult(CacheReport):
    """The cache; `failed` when a blob is not what its name says."""

    @property
    def failed(self) -> bool:
        """True when a blob is damaged."""
        return bool(self.damaged)

    @property
    def orphan_bytes(self) -> int:
        """Bytes of all repositories and of the store that nobody uses."""
        return sum(each.orphan_bytes for each in self.repos) + (self.store.unused_bytes if self.store else 0)

    @property
    def headline(self) -> str:
        """`12 repositories, 214 GiB; 3.1 GiB of orphans`."""
        orphans = self.orphan_bytes
        told = f"{len(self.repos)} {'repository' if len(self.repos) == 1 else 'repositories'}, {show_bytes(self.bytes)}"
        told += f"; {show_bytes(orphans)} of orphans" if orphans else ""
        if self.verified is None:
            return told
        bad = f"{counted(len(self.damaged), 'blob')} damaged" if self.damaged else "none damaged"
        return f"{told}; {counted(self.verified, 'blob')} verified, {bad}"

    def lines(self) -> list[str]:
        """Repositories by size with their revisions, then what is wrong and what to do."""
        now = time.time()
        rows = [line for each in self.repos for line in _repo_lines(each, now)]
        return [cut(printable(self.folder)), self.headline, "", *rows, *self._troubles()]

    def _troubles(self) -> Iterator[str]:
        told = list(self._told())
        if told:
            yield ""
        for text in told:
            yield from paragraph(printable(text), later="  ")

    def _told(self) -> Iterator[str]:
        for each in self.damaged:
            where = f", it is {', '.join(each.files)}" if each.files else ""
            yield f"x {each.path}: {each.text}{where}. hfbench pull --verify fetches it again"
        for lock in self.locks:
            sign = {"held": "~", "stale": "!", "unknown": "?"}[lock.state]
            yield f"{sign} {lock.path}: {lock.state}, {lock.owner}"
        broken = [(repo.repo, name) for repo in self.repos for each in repo.revisions for name in each.broken]
        for repo_name, name in broken[:SHOWN_REVISIONS]:
            yield f"! {repo_name}: {name} is a link that leads nowhere. hfbench pull {repo_name} brings the file back"
        if self.store:
            size = f"{counted(self.store.contents, 'content')}, {show_bytes(self.store.bytes)}"
            unused = f"{show_bytes(self.store.unused_bytes)} of it unused"
            yield f"~ the store that repositories share holds {size}; {unused}"
        if self.orphan_bytes:
            yield "~ orphans are used by no revision, and nothing goes on with them: hfbench cache free --orphans"
        if any(lock.state == "stale" for lock in self.locks):
            yield "~ a stale lock keeps others waiting for ever: hfbench cache free --orphans removes it"
        if self.strange:
            yield f"~ no repositories: {', '.join(self.strange[:SHOWN_REVISIONS])}"


@action("cache", result=CacheResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Cache:
    """Show what is in the Hugging Face cache: revisions, shared bytes, orphans, broken links and locks."""

    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")
    verify: bool = param("Hash every blob and compare with its name", default=False)

    def perform(self, run: Run) -> CacheResult:
        """Look at every entry; nothing is changed."""
        from hfbench.hub.caching.read import read_cache
        from hfbench.hub.caching.verify import verified
        from hfbench.models.reference import cache_folder

        found = read_cache(self.cache_dir or cache_folder())
        if self.verify:
            found = verified(found, run)
        return CacheResult(**{field.name: getattr(found, field.name) for field in fields(found)})


def _repo_lines(repo: CachedRepo, now: float) -> Iterator[str]:
    width = room(NAME)
    name = repo.repo if repo.kind == "model" else f"{repo.repo} ({repo.kind})"
    shared = f", {show_bytes(repo.shared_bytes)} shared" if repo.shared_bytes else ""
    used = show_ago(now - repo.last_used)
    shown = clip_middle(printable(name), width, ellipsis="...")
    yield f"{shown:<{min(width, NAME)}}  {show_bytes(repo.bytes):>9}  used {used}{shared}"
    for each in repo.revisions[:SHOWN_REVISIONS]:
        lost = f", x {counted(len(each.broken), 'broken link')}" if each.broken else ""
        names = ", ".join(each.refs) or "no ref"
        yield cut(
            f"  {each.commit[:12]}  {show_bytes(each.bytes):>9}  {show_bytes(each.own_bytes)} its own, {names}{lost}"
        )
    if len(repo.revisions) > SHOWN_REVISIONS:
        yield f"  and {len(repo.revisions) - SHOWN_REVISIONS} more revisions (--json lists all)"
    if repo.unnamed:
        size = show_bytes(sum(each.bytes for each in repo.unnamed))
        yield f"  ! {counted(len(repo.unnamed), 'blob')} that no revision names, {size}"
    dead = [each for each in repo.broken_downloads if not each.resumable]
    if dead:
        size = show_bytes(sum(each.bytes for each in dead))
        yield f"  ! {counted(len(dead), 'broken-off download')} that nothing goes on with, {size}"
    for part in repo.broken_downloads:
        if part.resumable:
            yield cut(f"  ~ {show_bytes(part.bytes)} of {part.file}: hfbench pull {repo.repo} goes on with it")
