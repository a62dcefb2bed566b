"""Folders of models that were opened on a hub: made side by side, named by revisions, removed when they are old."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.models.inventory.layout import COMMIT

STALE = 3600.0
"""Seconds after which what a killed process left is swept away."""
NEW = ".new-"
KEPT = 3
"""Commits of a model that stay here although no branch or tag means them any more: some may still be looked at."""


@contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """A new folder beside the others, gone again unless it was renamed."""
    parent.mkdir(parents=True, exist_ok=True)
    fresh = parent / f"{NEW}{os.getpid()}-{time.monotonic_ns():x}"
    fresh.mkdir()
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def sweep(home: Path) -> None:
    """Remove what was left by processes that died."""
    for left in (home / "snapshots").glob(f"{NEW}*"):
        try:
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


def point(ref: Path, commit: str) -> None:
    """Let a revision mean a commit."""
    try:
        if ref.read_text() == commit:
            return
    except OSError:
        pass
    try:
        ref.parent.mkdir(parents=True, exist_ok=True)
        fresh = ref.with_name(f"{NEW}{os.getpid()}-{ref.name}")
        fresh.write_text(commit)
        fresh.replace(ref)
    except OSError as error:  # branches `a` and `a/b`, one after the other
        raise HfbenchError(f"the revision cannot be kept: {error.strerror}", where=ref) from None


def forget_older(home: Path, opened: Path) -> None:
    """Remove commits of a model that no branch or tag means, but for the last ones that were opened, `opened` among
    them."""
    with suppress(OSError):
        os.utime(opened)
    named = {each.read_text("utf-8", "replace")[:40] for each in _refs(home) if not COMMIT.fullmatch(each.name)}
    others = [each for each in (home / "snapshots").glob("[0-9a-f]*") if each.name not in named]
    for old in sorted(others, key=_changed, reverse=True)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
        for each in _refs(home):
            if each.name == old.name:
                each.unlink(missing_ok=True)


def _refs(home: Path) -> list[Path]:
    return [each for each in (home / "refs").rglob("*") if each.is_file() and not each.name.startswith(NEW)]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
