"""What is swept away at the start: drafts nobody writes any more, uploads in parts whose links have expired."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from hfbench.registry.storage.drafts import sync_folder
from hfbench.registry.storage.layout import Layout

PARTS_STAY = 24 * 3600.0
"""Seconds a draft, or an upload in parts, stays after it was written to."""


def make_folders(layout: Layout) -> None:
    """Every folder of the hub, readable by its owner alone, and durable."""
    for folder in layout.folders():
        folder.mkdir(mode=0o700, exist_ok=True, parents=folder == layout.root)
    for kind in ("blobs", "xorbs", "cache"):
        sync_folder(layout.root / kind)
    sync_folder(layout.root)


def sweep(layout: Layout) -> int:
    """Remove what a server that died left behind; bytes freed. Only while no server runs on the folder."""
    return sum(map(_remove, layout.drafts.iterdir())) + sweep_abandoned(layout)


def sweep_abandoned(layout: Layout) -> int:
    """Remove drafts and uploads in parts that nobody wrote to for a day, as a worker leaves them that is killed; bytes
    freed. Servers may run."""
    before = time.time() - PARTS_STAY
    freed = 0
    for folder in (layout.drafts, layout.uploads):
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                freed += _remove(path) if path.lstat().st_mtime < before else 0
    return freed


def _remove(path: Path) -> int:
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
