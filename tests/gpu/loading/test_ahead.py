"""Weights read ahead: only where it helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.gpu import memory
from hfbench.gpu.loading.ahead import read_files, read_weights
from hfbench.gpu.loading.files import find_files
from hfbench.gpu.loading.page_cache import COLD, drop, resident
from hfbench.gpu.reading import Unavailable


@pytest.fixture
def cold(checkpoint: Path) -> Path:
    """A checkpoint that the page cache does not hold."""
    held = drop(find_files(checkpoint).safetensors)
    if isinstance(held, Unavailable) or held > COLD:
        pytest.skip("the page cache here cannot be made cold")
    return checkpoint


def test_cold_weights_are_read_and_warm_ones_are_left_alone(cold: Path) -> None:
    begun = read_weights(cold)
    assert begun is not None
    begun.wait()
    assert resident(find_files(cold).safetensors) == 1.0
    assert read_weights(cold) is None


def test_weights_that_would_fill_the_memory_are_not_read(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    assert read_weights(cold) is None, "nobody knows how much there is"
    (tmp_path / "meminfo").write_text("MemFree: 9999999 kB\nMemAvailable:     6144 kB\n")
    assert read_weights(cold) is None
    (tmp_path / "meminfo").write_text("MemAvailable:   999999 kB\n")
    assert read_weights(cold) is not None


def test_a_folder_without_weights_or_a_file_that_is_gone_holds_nobody_up(tmp_path: Path) -> None:
    assert read_weights(tmp_path) is None
    read_files([tmp_path / "gone"]).wait()
