"""Sweeps of toy actions, of which nothing outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sweep_story import SweepStory


@pytest.fixture
def story(toy_actions: Path, home: Path) -> Iterator[SweepStory]:
    """The story of one sweep."""
    told = SweepStory()
    yield told
    with suppress(Exception):
        told.clean_up()
