"""Folders of sweeps."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sweep_folder import Written


@pytest.fixture
def four(tmp_path: Path) -> Callable[..., Written]:
    """A sweep of two axes with four cells, none of which has begun."""

    def write(name: str = "four", **more: Any) -> Written:
        cells = [("fp32", 1), ("fp32", 2), ("bf16", 1), ("bf16", 2)]
        return Written(tmp_path / "sweeps" / name, {"dtype": ["fp32", "bf16"], "batch": [1, 2]}, cells, **more)

    return write


@pytest.fixture
def held() -> Iterator[Callable[[Written], None]]:
    """Hold the lock of a sweep in another open file, as its conductor would."""
    files = []

    def hold(sweep: Written) -> None:
        files.append((sweep.folder / "lock").open("w"))
        fcntl.flock(files[-1], fcntl.LOCK_EX)

    yield hold
    for file in files:
        file.close()
