"""Commits that were opened go when nothing means them, but for the last ones."""

from __future__ import annotations

import os
from pathlib import Path

from hfbench.hub.shadows import KEPT, forget_older, point


def snapshot(home: Path, digit: str, age: float) -> Path:
    folder = home / "snapshots" / (digit * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    os.utime(folder, (1e9 - age, 1e9 - age))
    return folder


def left(home: Path) -> set[str]:
    return {each.name[0] for each in (home / "snapshots").iterdir()}


def test_the_last_commits_stay_and_so_does_what_a_branch_or_a_tag_means(tmp_path: Path) -> None:
    folders = [snapshot(tmp_path, digit, age) for age, digit in enumerate("0123456789")]
    point(tmp_path / "refs" / "feature" / "x", "8" * 40)
    point(tmp_path / "refs" / "v1", "9" * 40)
    for digit in "67":
        point(tmp_path / "refs" / (digit * 40), digit * 40)
    forget_older(tmp_path, folders[7])
    assert left(tmp_path) == {"7", *"01"[: KEPT - 1], "8", "9"}
    assert {str(each.relative_to(tmp_path / "refs")) for each in (tmp_path / "refs").rglob("*") if each.is_file()} == {
        "feature/x",
        "v1",
        "7" * 40,
    }


def test_few_commits_all_stay(tmp_path: Path) -> None:
    folders = [snapshot(tmp_path, digit, age) for age, digit in enumerate("01")]
    forget_older(tmp_path, folders[0])
    assert left(tmp_path) == {"0", "1"}
