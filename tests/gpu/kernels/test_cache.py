"""What is kept of earlier compilations, and what of it is believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hfbench.gpu.kernels.cache import Cache

VALUE = {"registers": 12, "shared_bytes": 0, "failed": ""}


@pytest.fixture
def kept(tmp_path: Path, home: Path) -> tuple[Cache, Path]:
    """A cache with one value, and its file."""
    cache = Cache(tmp_path / "mine.py", "digest")
    cache.put("row", value=VALUE, neighbours={})
    [file] = (home / "cache" / "kernels").rglob("*.json")
    return cache, file


def test_a_value_comes_back_as_it_was(kept: tuple[Cache, Path]) -> None:
    assert kept[0].get("row") == VALUE
    assert kept[0].get("other") is None


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[" * 100_000,
        "[]",
        {"value": [1]},
        {"value": {**VALUE, "shared_bytes": None}},
        {"value": {}},
        {"sum": None},
        {"neighbours": []},
        {"neighbours": {"/gone.py": "x"}},
    ],
    ids=lambda damage: str(damage)[:20],
)
def test_damage_of_any_form_is_as_if_nothing_was_kept(kept: tuple[Cache, Path], damage: Any) -> None:
    cache, file = kept
    whole = json.loads(file.read_text())
    file.write_text(damage if isinstance(damage, str) else json.dumps(whole | damage))
    assert cache.get("row") is None
