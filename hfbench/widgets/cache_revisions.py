"""One repository of a cache: revisions, orphans and broken-off downloads as rows, and the files of a revision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_ago, show_bytes
from hfbench.widgets.cells import Span, fit, width_of
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.hub.caching.facts import BrokenDownload, CachedRepo, CacheRevision, Unnamed
    from hfbench.models.inventory.facts import FileEntry

COMMIT = 12
SIZE = 9
GAP = "  "

COLUMNS = (
    Column("revision", "Revision", min=COMMIT),
    Column("refs", "Names", flexible=True, min=10, max=40),
    Column("files", "Files", align="right", priority=2),
    Column("size", "Size", align="right", min=8),
    Column("own", "Own", align="right", priority=1),
    Column("used", "Used", align="right", priority=3),
    Column("state", "State", flexible=True, min=16, max=40),
)


def revision_records(repo: CachedRepo, now: float, glyphs: Glyphs) -> list[Record]:
    """A row a revision, then what no revision uses."""
    rows = [_revision(each, now, glyphs) for each in repo.revisions]
    rows += [_unnamed(each, glyphs) for each in repo.unnamed]
    return rows + [_download(each, now, glyphs) for each in repo.broken_downloads]


def revision_facts(repo: CachedRepo, key: str, now: float) -> Iterator[Fact]:
    """What is known of a row: where it lies, what is wrong, what to do."""
    for each in repo.revisions:
        if each.commit == key:
            yield Fact("revision", f"{each.commit}  {', '.join(each.refs)}".rstrip())
            own = f"{show_bytes(each.own_bytes)} of them its own: d frees these"
            yield Fact("size", f"{counted(each.files, 'file')}, {show_bytes(each.bytes)}, {own}")
            for number, name in enumerate(each.broken):
                yield Fact("" if number else "found", f"{name} is a link that leads nowhere", "warn")
            if each.broken:
                yield Fact("do", "p pulls it again")
            yield Fact("folder", f"{repo.path}/snapshots/{each.commit}", "muted")
    for blob in repo.unnamed:
        if blob.path == key:
            yield Fact("found", f"a blob of {show_bytes(blob.bytes)} that no revision names", "warn")
            yield Fact("do", "O frees all orphans of the cache")
            yield Fact("blob", blob.path, "muted")
    for part in repo.broken_downloads:
        if part.path == key:
            of = f" of {part.file}" if part.file else ""
            cut = f"{show_bytes(part.bytes)}{of}, cut short {show_ago(now - part.changed)}"
            yield Fact("found", cut, "unknown" if part.resumable else "warn")
            goes_on = "p goes on with it" if part.resumable else "nothing goes on with it: O frees it"
            yield Fact("do", goes_on)
            yield Fact("file", part.path, "muted")


def file_lines(files: tuple[FileEntry, ...], width: int, glyphs: Glyphs) -> list[list[Span]]:
    """Names and sizes; what is wrong with a file stands below it."""
    room = max(1, width - SIZE - len(GAP))
    column = min(max((width_of(printable(each.name)) for each in files), default=0), room)
    lines: list[list[Span]] = []
    for each in files:
        name = fit(printable(each.name), column, middle=True, ellipsis=glyphs.ellipsis)
        state: State = "error" if each.problem else ""
        lines.append([(name, state), (f"{GAP}{show_bytes(each.bytes):>{SIZE}}", "")])
        if each.problem:
            lines += facts_lines([Fact("", each.problem, "error")], width, glyphs)
    return lines


def _revision(each: CacheRevision, now: float, glyphs: Glyphs) -> Record:
    state: State = "warn" if each.broken else "ok"
    broken = f" {counted(len(each.broken), 'broken link')}" if each.broken else ""
    cells = {
        "revision": each.commit[:COMMIT],
        "refs": ", ".join(each.refs) or "no ref",
        "files": f"{each.files:,}",
        "size": show_bytes(each.bytes),
        "own": show_bytes(each.own_bytes),
        "used": show_ago(now - each.last_used),
        "state": f"{glyphs.sign(state)}{broken}",
    }
    order = {"files": each.files, "size": each.bytes, "own": each.own_bytes, "used": each.last_used}
    states: dict[str, State] = {"state": state, "used": "muted", "refs": "" if each.refs else "muted"}
    return Record(each.commit, cells, states, order)


def _unnamed(each: Unnamed, glyphs: Glyphs) -> Record:
    size = show_bytes(each.bytes)
    cells = {
        "revision": "none",
        "refs": f"blob {each.path.rpartition('/')[2][:COMMIT]}",
        "size": size,
        "own": size,
        "state": f"{glyphs.sign('warn')} orphan",
    }
    return Record(each.path, cells, {"state": "warn"}, {"size": each.bytes, "own": each.bytes})


def _download(each: BrokenDownload, now: float, glyphs: Glyphs) -> Record:
    state: State = "unknown" if each.resumable else "warn"
    size = show_bytes(each.bytes)
    cells = {
        "revision": "none",
        "refs": each.file or "a download",
        "size": size,
        "own": size,
        "used": show_ago(now - each.changed),
        "state": f"{glyphs.sign(state)} {'cut short' if each.resumable else 'dead download'}",
    }
    order = {"size": each.bytes, "own": each.bytes, "used": each.changed}
    return Record(each.path, cells, {"state": state, "used": "muted"}, order)
