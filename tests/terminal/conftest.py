"""Terminals that are closed again, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tmux import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Open a terminal of this size; all are closed at the end."""
    opened: list[Terminal] = []

    def open_one(columns: int = 80, rows: int = 24) -> Terminal:
        folder = tmp_path / f"terminal-{len(opened)}"
        folder.mkdir()
        opened.append(Terminal(folder, (columns, rows)))
        return opened[-1]

    yield open_one
    for each in opened:
        each.kill()
