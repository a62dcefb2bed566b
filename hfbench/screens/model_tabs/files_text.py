"""The files of a model in words: table rows, the details of one, and how a cache lies on disk."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.models.inventory.facts import CacheLayout, FileEntry, Inventory
from hfbench.models.problem import counted
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import State
from hfbench.widgets.record_rows import Record

MOST_REVISIONS = 3
"""Revisions of a cache named above the table; `hfbench files` lists all."""

HELD = {"header": "its header is here, the rest is on the hub: p pulls it", "nothing": "on the hub only: p pulls it"}
"""How much of a file is here, where it is not all of it."""

SHORT = 12
"""Digits of a hash or a commit in the table; the details have all."""


def record_of(file: FileEntry) -> Record:
    """A file as a row; a fault stands where the link would."""
    verdict, state = _verdict(file)
    wrong = bool(file.problem or file.lfs)
    note = file.problem or _pointer(file) or HELD.get(file.held) or (f"-> {file.target}" if file.target else "")
    return Record(
        file.name,
        {"name": file.name, "kind": file.kind, "size": show_bytes(file.bytes), "hash": verdict, "note": note},
        states={"hash": state, "note": "error" if wrong else "muted"},
        order={"size": file.bytes},
    )


def fault_of(file: FileEntry) -> str:
    """What is wrong with a file, empty when nothing is."""
    return file.problem or _pointer(file) or (file.note if file.verdict in ("differs", "unreadable") else "")


def _verdict(file: FileEntry) -> tuple[str, State]:
    """The cell of the hash: whether it is right, or its beginning where nothing tells what it should be."""
    if file.held != "whole" and not file.problem:
        return ("~ header" if file.held == "header" else "~ not here"), "unknown"
    if file.verdict == "unknown" and file.sha256:
        return file.sha256[:SHORT], ""
    words: dict[str, tuple[str, State]] = {
        "ok": ("ok", "ok"),
        "differs": ("x differs", "error"),
        "unreadable": ("x unreadable", "error"),
    }
    unhashed: tuple[str, State] = ("x", "error") if file.problem else ("x pointer", "error") if file.lfs else ("", "")
    return words.get(file.verdict, unhashed)


def _pointer(file: FileEntry) -> str:
    return f"git-lfs pointer to a file of {show_bytes(file.lfs.size)}, which is not here" if file.lfs else ""


def file_facts(file: FileEntry) -> Iterator[Fact]:
    """All that is known of one file: what is wrong first, then hashes, then how it lies on disk."""
    yield Fact("path", file.path)
    yield Fact("size", f"{file.bytes:,} bytes ({show_bytes(file.bytes)})")
    if file.problem:
        yield Fact("problem", file.problem, "error")
    if file.held in HELD:
        yield Fact("held", HELD[file.held], "unknown")
    if file.lfs:
        where = "git lfs checkout puts it here from .git/lfs" if file.lfs.fetched else "git lfs pull fetches it"
        yield Fact("pointer", f"to a file of {file.lfs.size:,} bytes, sha256 {file.lfs.oid}; {where}", "error")
    if file.verdict == "ok":
        yield Fact("verdict", "as it should be", "ok")
    elif file.verdict == "unknown":
        yield Fact("verdict", "nothing tells what the hash should be", "muted")
    elif file.verdict and not file.problem:
        yield Fact("verdict", f"not what it should be: {file.note}", "error")
    if file.sha256:
        yield Fact("sha256", file.sha256 + (" (remembered)" if file.cached else ""))
    if file.git_sha1:
        yield Fact("git sha1", file.git_sha1)
    if file.expected:
        yield Fact("should be", f"{file.expected.algorithm} {file.expected.digest}, by {file.expected.source}")
    if file.target:
        yield Fact("link to", file.target)
    if file.blob:
        others = ", ".join(each[:SHORT] for each in file.shared)
        yield Fact("blob", f"{file.blob}, " + (f"also used by {others}" if others else "of this revision alone"))
    if file.names > 1:
        yield Fact("names", f"{file.names} hard links to the same content")


def layout_facts(inventory: Inventory, dot: str) -> Iterator[Fact]:
    """Sizes; of a cache its blobs and revisions."""
    parts = [counted(len(inventory.files), "file"), show_bytes(inventory.bytes)]
    if inventory.shared_bytes:
        parts += [f"{show_bytes(inventory.own_bytes)} its own", f"{show_bytes(inventory.shared_bytes)} shared"]
    yield Fact("files", f" {dot} ".join([*parts, *inventory.notes]), "muted")
    if inventory.cache is not None:
        yield from _cache(inventory.cache, dot)


def _cache(cache: CacheLayout, dot: str) -> Iterator[Fact]:
    parts = [f"{counted(cache.blobs, 'blob')} {show_bytes(cache.blob_bytes)}"]
    if cache.unused:
        parts.append(f"{cache.unused} in no revision ({show_bytes(cache.unused_bytes)})")
    if cache.incomplete:
        parts.append(f"{counted(cache.incomplete, 'broken-off download')} ({show_bytes(cache.incomplete_bytes)})")
    parts += [f"{counted(len(cache.absent), 'file')} known to be absent"] if cache.absent else []
    yield Fact("cache", f" {dot} ".join(parts), "muted")
    for place, each in enumerate(sorted(cache.revisions, key=lambda each: not each.here)[:MOST_REVISIONS]):
        lost = f" {dot} x {counted(each.dangling, 'dangling link')}" if each.dangling else ""
        own = f"{show_bytes(each.own_bytes)} its own{lost}"
        names = ", ".join(each.refs) or "no ref"
        here = "this one, " if each.here else ""
        text = f"{each.commit[:SHORT]} {here}{names} {dot} {show_bytes(each.bytes)}, {own}"
        yield Fact("" if place else "revisions", text, "muted")
    if len(cache.revisions) > MOST_REVISIONS:
        yield Fact("", f"and {len(cache.revisions) - MOST_REVISIONS} more", "muted")
