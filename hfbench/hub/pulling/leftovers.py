"""What earlier downloads left in a cached repository: those of stock clients are explained, our own are settled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.locks import BlobLock
from hfbench.hub.pulling.partial import JOURNAL, PART, read_journal
from hfbench.hub.pulling.places import CachePlace
from hfbench.models.inventory.layout import INCOMPLETE
from hfbench.models.problem import counted
from hfbench.units import show_bytes

Say = Callable[[str, str], None]


def explain_orphans(place: CachePlace, say: Say) -> None:
    """Tell of downloads that other clients broke off: nothing takes them up again."""
    sizes = [_bytes(path) for path in broken_downloads(place.blobs) if not is_ours(path.name)]
    if sizes:
        told = f"{counted(len(sizes), 'download')} that another client broke off, {show_bytes(sum(sizes))}"
        say(
            f"{told}, lie in {place.blobs}: nothing goes on with them, hfbench cache free --orphans removes them",
            "info",
        )


def forget_changed(place: CachePlace, files: Iterable[HubFile], say: Say) -> None:
    """Remove partial downloads of files that have another content on the hub by now, and say so; and journals of files
    that were published in the moment the process was killed."""
    now = {each.path: each.etag for each in files}
    for journal in broken_downloads(place.blobs):
        if not journal.name.endswith(JOURNAL):
            continue
        etag = journal.name.removesuffix(JOURNAL)
        part = journal.with_name(f"{etag}{PART}")
        path = read_journal(journal)[0].get("path")
        changed = isinstance(path, str) and now.get(path, etag) != etag and etag not in now.values()
        if not changed and part.exists():
            continue
        lock = BlobLock(place.lock_of(etag))
        if lock.take():
            freed = _bytes(part)
            for each in (journal, part):
                each.unlink(missing_ok=True)
            lock.release()
            if changed:
                say(
                    f"{path} has changed on the hub since a pull of it was cut short, so it starts anew;"
                    f" {show_bytes(freed)} of the old one were removed",
                    "warning",
                )


def broken_downloads(blobs: Path) -> Iterator[Path]:
    """Every partial file and journal beside the blobs."""
    try:
        entries = sorted(os.scandir(blobs), key=lambda each: each.name)
    except OSError:
        return
    yield from (Path(each.path) for each in entries if each.name.endswith(INCOMPLETE))


def is_ours(name: str) -> bool:
    """Whether a pull of hfbench goes on with it."""
    return name.endswith((PART, JOURNAL))


def _bytes(path: Path) -> int:
    """Bytes a file takes on disk: one that is laid out whole and half filled takes half."""
    try:
        return min(os.lstat(path).st_size, os.lstat(path).st_blocks * 512)
    except OSError:
        return 0
