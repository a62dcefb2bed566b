"""Scratch folders: what a killed process left is removed by the next one, and nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from hfbench.gpu.kernels.scratch import LOCK, YOUNG, Scratch
from hfbench.jobs.directory import take_lock


def folder(parent: Path, name: str, *, age: float = 2 * YOUNG) -> Path:
    """A folder as a process leaves it that was killed so many seconds ago."""
    made = parent / name
    (made / "deep").mkdir(parents=True)
    (made / LOCK).touch()
    then = (made / LOCK).stat().st_mtime - age
    os.utime(made / LOCK, (then, then))
    return made


def test_what_nobody_holds_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, held, young = folder(tmp_path, "a-left"), folder(tmp_path, "a-held"), folder(tmp_path, "a-young", age=0)
    foreign, unmarked = folder(tmp_path, "b-left"), tmp_path / "a-unmarked"
    unmarked.mkdir()
    (tmp_path / "a-link").symlink_to(foreign)
    lock = take_lock(held / LOCK)
    assert lock is not None
    scratch = Scratch("a-")
    os.close(lock)
    assert not left.exists()
    assert all(each.is_dir() for each in (held / "deep", young / "deep", foreign / "deep", unmarked))
    made = Path(scratch.name)
    assert made.is_dir()
    os.utime(made / LOCK, (0, 0))
    Scratch("a-").cleanup()
    assert made.is_dir(), "it is in use"
    scratch.cleanup()
    assert not made.exists()
