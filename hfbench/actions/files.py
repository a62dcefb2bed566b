"""files: the files of a model as they lie on disk, and whether their hashes are what they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.line_width import cut, paragraph, room
from hfbench.models.inventory.facts import CacheLayout, FileEntry, Inventory
from hfbench.models.problem import counted
from hfbench.text import clip_middle, printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 10
NAME = 42
SHOWN_REVISIONS = 5

_SIGNS = {"ok": "ok", "differs": "x", "unreadable": "x", "unknown": "", "": ""}


@dataclass(frozen=True, kw_only=True)
class FilesResult(Inventory):
    """The files of a model; `failed` when a hash is not what it should be, or could not be told."""

    @property
    def failed(self) -> bool:
        """True when a file is not what it should be."""
        return bool(self.differing)

    @property
    def headline(self) -> str:
        """`2 files differ, 7 ok`; sizes while nothing was hashed."""
        counts = Counter(each.verdict for each in self.files)
        bad, lost = counts["differs"], counts["unreadable"]
        told = [f"{counted(bad, 'file')} {'differs' if bad == 1 else 'differ'}"] if bad else []
        told += [f"{counted(lost, 'file')} cannot be read"] if lost else []
        told += [f"{counts['ok']} ok"] if counts["ok"] else []
        told += [f"{counts['unknown']} hashed, nothing to compare with"] if counts["unknown"] else []
        return ", ".join(told) or f"{counted(len(self.files), 'file')}, {show_bytes(self.bytes)}"

    def lines(self) -> list[str]:
        """The files for people, as wide as the terminal."""
        width = min(max((len(printable(each.name)) for each in self.files), default=0), room(NAME))
        rows = [line for each in self.files for line in _file_lines(each, width)]
        shared = f", {show_bytes(self.own_bytes)} its own, {show_bytes(self.shared_bytes)} shared"
        size = f"{counted(len(self.files), 'file')}, {show_bytes(self.bytes)}{shared if self.shared_bytes else ''}"
        head = [_labelled("model", self.model), _labelled("folder", self.folder), _labelled("size", size)]
        head += [_labelled("revision", " at ".join(filter(None, [self.revision, self.commit])))] if self.commit else []
        tail = list(_cache_lines(self.cache)) if self.cache else []
        tail += [line for note in self.notes for line in paragraph(f"~ {printable(note)}")]
        hashed = any(each.verdict for each in self.files)
        return [*head, "", *rows, *(["", *tail] if tail else []), *(["", self.headline] if hashed else [])]


@action("files", result=FilesResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Files:
    """List the files of a model with sizes, links and cache layout, and check their hashes on request."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    sha256: bool = param("Hash the files and compare with what they should be", default=False)
    only: tuple[str, ...] = param("With --sha256: only files of these names, with * and ?", default=())
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> FilesResult:
        """Look at every entry and hash what was asked for; UsageError for a pattern that no name matches."""
        from hfbench.models.inventory.inventory import take_inventory
        from hfbench.models.reference import resolve

        if self.only and not self.sha256:
            raise UsageError("only says which files to hash", remedy="give --sha256 too")
        location = resolve(self.model, cache_dir=self.cache_dir)
        found = take_inventory(location)
        if self.sha256:
            found = replace(found, files=tuple(self._hashed(found.files, location.folder, run)))
        return FilesResult(**{field.name: getattr(found, field.name) for field in fields(found)})

    def _hashed(self, files: Sequence[FileEntry], folder: Path, run: Run) -> Iterator[FileEntry]:
        from hfbench.models.inventory.digest_cache import DigestCache
        from hfbench.models.inventory.inventory import hashed, wanted

        with DigestCache() as cache:
            found = hashed(
                wanted(files, self.only),
                folder,
                cache=cache,
                tell=lambda reading: run.progress("sha256", reading.done, reading.total, "B"),
            )
            told = {each.name: each for each in found}
        yield from (told.get(each.name, each) for each in files)


def _file_lines(entry: FileEntry, width: int) -> Iterator[str]:
    name = clip_middle(printable(entry.name), width, ellipsis="...")
    yield f"{name:<{width}}  {entry.kind:<9} {show_bytes(entry.bytes):>9}  {_state(entry)}".rstrip()
    for text in _notes(entry):
        yield from paragraph(printable(text), most=3, first="  ", later="    ")


def _state(entry: FileEntry) -> str:
    """The verdict in one word, else what kind of entry it is."""
    if entry.verdict:
        digest = f"{entry.sha256[:12]}" if entry.sha256 else ""
        return " ".join(filter(None, [_SIGNS[entry.verdict], digest]))
    if entry.problem:
        return "x"
    if entry.held != "whole":
        return "header" if entry.held == "header" else "on the hub"
    return "pointer" if entry.lfs else "link" if entry.target else ""


def _notes(entry: FileEntry) -> Iterator[str]:
    if entry.problem:
        yield f"x {entry.problem}"
    elif entry.lfs is not None:
        where = ".git/lfs has it: git lfs checkout" if entry.lfs.fetched else "git lfs pull fetches it"
        size = show_bytes(entry.lfs.size)
        yield f"x a git-lfs pointer to a file of {size}, which is not here; {where}; sha256 {entry.lfs.oid}"
    elif entry.verdict in ("differs", "unreadable"):
        yield f"x {entry.note}"


def _cache_lines(cache: CacheLayout) -> Iterator[str]:
    """Refs, revisions and what they share."""
    yield _labelled("cache", cache.folder)
    yield _labelled("blobs", f"{counted(cache.blobs, 'blob')}, {show_bytes(cache.blob_bytes)}")
    if cache.unused:
        yield _labelled("", f"{counted(cache.unused, 'blob')} in no revision, {show_bytes(cache.unused_bytes)}")
    if cache.incomplete:
        broken = counted(cache.incomplete, "broken-off download")
        yield _labelled("", f"{broken}, {show_bytes(cache.incomplete_bytes)}; nothing resumes them")
    for place, each in enumerate(cache.revisions[:SHOWN_REVISIONS]):
        lost = f", x {counted(each.dangling, 'dangling link')}" if each.dangling else ""
        sizes = f"{show_bytes(each.bytes)}, {show_bytes(each.own_bytes)} its own{lost}"
        names = ", ".join(each.refs) or "no ref"
        here = "this one, " if each.here else ""
        yield _labelled("" if place else "revisions", f"{each.commit[:12]}  {sizes}; {here}{names}")
    if len(cache.revisions) > SHOWN_REVISIONS:
        yield _labelled("", f"and {len(cache.revisions) - SHOWN_REVISIONS} more (--json lists all)")
    if cache.absent:
        absent = ", ".join(cache.absent[:3]) + (f" and {len(cache.absent) - 3} more" if len(cache.absent) > 3 else "")
        yield _labelled("absent", absent)


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{cut(printable(text), LABEL)}".rstrip()
