"""Headers are read once, and again when a file changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.estimate import headers
from hfbench.estimate.headers import count_headers

ONE = {"model.embed_tokens.weight": ("BF16", (16, 8), 256)}
TWO = {**ONE, "model.norm.weight": ("BF16", (8,), 16)}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were opened, in order."""
    seen: list[Path] = []
    real = headers.open_checkpoint

    def look(folder: Path, *more: Any) -> Any:
        seen.append(folder)
        return real(folder, *more)

    monkeypatch.setattr(headers, "open_checkpoint", look)
    return seen


def tensors(folder: Path) -> int | None:
    found = count_headers(folder, layers=None, tied=None, bits=None).weights
    return found.tensors if found else None


def test_a_model_is_read_once(write_folder: Callable[..., Path], opened: list[Path]) -> None:
    folder = write_folder({}, ONE)
    assert [tensors(folder), tensors(folder)] == [1, 1]
    assert opened == [folder]


def test_a_file_that_is_replaced_is_read_again(
    write_folder: Callable[..., Path], opened: list[Path], tmp_path: Path
) -> None:
    folder, other = write_folder({}, ONE), write_folder({}, TWO, "other")
    assert tensors(folder) == 1
    os.replace(other / "model.safetensors", folder / "model.safetensors")
    assert tensors(folder) == 2
    assert len(opened) == 2


def test_a_file_that_comes_or_a_link_that_breaks_is_seen(write_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = write_folder({})
    assert tensors(folder) is None
    stored = write_folder({}, ONE, "stored") / "model.safetensors"
    (folder / "model.safetensors").symlink_to(stored)
    assert tensors(folder) in (1, None)  # a link out of the folder may be refused, but never raises
    stored.unlink()
    assert tensors(folder) is None


def test_a_folder_that_is_gone_is_no_reason_to_raise(tmp_path: Path) -> None:
    assert headers._stamp(tmp_path / "nowhere") == ()
