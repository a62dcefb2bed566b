"""The page cache, looked at: files are really cold and really warm, and where they cannot be it is said."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hfbench.gpu.loading.files import filesystem
from hfbench.gpu.loading.page_cache import COLD, HIDDEN, WARM, drop, read_through, resident, warm

PAGES = 512


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """2 MiB and a byte on a disk."""
    if filesystem(tmp_path) in ("tmpfs", "ramfs", "unknown"):
        pytest.skip("the folder for tests has no disk behind it")
    path = tmp_path / "data"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE + 1))
    return path


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A file that lies in memory."""
    if filesystem(Path("/dev/shm")) != "tmpfs" or not os.access("/dev/shm", os.W_OK):
        pytest.skip("no tmpfs here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "data"
        path.write_bytes(bytes(PAGES * mmap.PAGESIZE))
        yield path


def test_a_file_is_cold_after_it_was_dropped_and_warm_after_it_was_read(file: Path) -> None:
    assert resident([file]) == 1  # just written
    assert drop([file]) <= COLD
    assert resident([file]) <= COLD
    assert warm([file]) >= WARM
    assert resident([file]) >= WARM


def test_a_part_that_was_read_is_counted(file: Path) -> None:
    assert drop([file]) <= COLD
    with open(file, "rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        opened.read(mmap.PAGESIZE * PAGES // 4)
    assert 0.2 < resident([file]) < 0.9


def test_what_another_process_has_mapped_cannot_be_made_cold(file: Path) -> None:
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0
        assert drop([file]) > 0.9
    assert drop([file]) <= COLD


def test_files_in_memory_are_never_cold(in_memory: Path) -> None:
    assert drop([in_memory]) == 1


def test_who_may_not_know_gets_a_reason_and_not_the_kernels_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop([file])
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    assert resident([file]) == HIDDEN
    assert drop([file]) == HIDDEN


def test_reading_through_counts_every_byte(file: Path) -> None:
    assert read_through(file) == PAGES * mmap.PAGESIZE + 1


def test_an_empty_file_is_neither(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert resident([tmp_path / "empty"]) == 0


def test_the_deepest_mount_names_the_filesystem() -> None:
    assert filesystem(Path("/proc/self/status")) == "proc"
