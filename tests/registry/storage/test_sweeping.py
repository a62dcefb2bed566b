"""Drafts that nobody writes to any more."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.sweeping import PARTS_STAY, make_folders, sweep, sweep_abandoned


def test_while_servers_run_only_what_is_old_goes_and_at_a_start_every_draft(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "hub")
    make_folders(layout)
    old, long_ago = [], time.time() - PARTS_STAY - 10
    for folder in (layout.drafts, layout.uploads):
        (folder / "fresh").write_bytes(b"1234")
        (folder / "old").write_bytes(b"12")
        os.utime(folder / "old", (long_ago, long_ago))
        old.append(folder / "old")
    assert sweep_abandoned(layout) == 4
    assert not any(path.exists() for path in old)
    assert sweep(layout) == 4
    assert [path.name for path in layout.uploads.iterdir()] == ["fresh"], "a client may still send the rest"
    assert not list(layout.drafts.iterdir())
