"""What is swept away at the start: drafts nobody writes any more, uploads in parts whose links have expired."""

from __future__ import annotations

import time
from contextlib import suppress

from hfbench.registry.storage.drafts import sync_folder
from hfbench.registry.storage.layout import Layout

PARTS_STAY = 24 * 3600.0
"""Seconds an upload in parts stays after its last part came."""


def make_folders(layout: Layout) -> None:
    """Every folder of the hub, readable by its owner alone, and durable."""
    for folder in layout.folders():
        folder.mkdir(mode=0o700, exist_ok=True, parents=folder == layout.root)
    for kind in ("blobs", "xorbs", "cache"):
        sync_folder(layout.root / kind)
    sync_folder(layout.root)


def sweep(layout: Layout) -> int:
    """Remove what a server that died left behind; bytes freed. Only while no server runs on the folder."""
    freed = 0
    for draft in layout.drafts.iterdir():
        with suppress(FileNotFoundError):
            freed += draft.stat().st_size
            draft.unlink()
    for upload in layout.uploads.iterdir():
        with suppress(FileNotFoundError):
            told = upload.stat()
            if time.time() - told.st_mtime > PARTS_STAY:
                freed += told.st_size
                upload.unlink()
    return freed
