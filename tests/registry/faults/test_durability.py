"""What is acknowledged outlives a power cut: the order of syncs, renames and the transaction that names a file."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest
from hub_inside import DEEDS, content_of
from hub_process import HubProcess

from hfbench.registry import fault_points
from hfbench.registry.hub import Hub

Inside = tuple[Hub, httpx2.AsyncClient]
COMMIT = "transaction"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every sync, rename and transaction in its order, each of them really done."""
    told: list[tuple[str, str]] = []
    sync, rename = os.fsync, os.rename

    def noted_sync(handle: int) -> None:
        sync(handle)
        told.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))

    def noted_rename(source: Path, target: Path) -> None:
        rename(source, target)
        told.append(("rename", f"{source} {target}"))

    def noted_point(point: str) -> None:
        if point == "commit":
            told.append((COMMIT, ""))

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", noted_rename)
    monkeypatch.setattr(fault_points, "_act", noted_point)
    return told


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_file_is_synced_renamed_and_its_folder_synced_before_it_is_named(
    resting: HubProcess, inside: Inside, steps: list[tuple[str, str]], deed: str
) -> None:
    await DEEDS[deed](inside[1], f"{deed}.bin", content_of(sum(deed.encode())))
    root = resting.settings.layout.root
    kept = [
        (place, *map(Path, where.split()))
        for place, (what, where) in enumerate(steps)
        if what == "rename" and (root / "cache") not in Path(where.split()[1]).parents
    ]
    assert kept, "something was kept on the disk"
    for place, source, target in kept:
        transaction = steps.index((COMMIT, ""), place)
        assert ("sync", str(source)) in steps[:place], "its bytes, before it has its name"
        assert ("sync", str(target.parent)) in steps[place:transaction], "its name, before the database has it"


async def test_sqlite_syncs_each_transaction(inside: Inside) -> None:
    async with inside[0].database.writing() as connection:
        synchronous = (await connection.exec_driver_sql("PRAGMA synchronous")).scalar()
        journal = (await connection.exec_driver_sql("PRAGMA journal_mode")).scalar()
    assert (synchronous, journal) == (2, "wal")
