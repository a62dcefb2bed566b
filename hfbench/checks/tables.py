"""Rules that are kept as data: the TOML files beside this module."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@lru_cache(maxsize=8)
def table(name: str) -> Mapping[str, Any]:
    """The content of `data/NAME.toml`."""
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))
