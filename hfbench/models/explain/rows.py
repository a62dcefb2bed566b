"""A configuration as rows: each value under its full path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.models.json_text import DEEPEST

MOST_ROWS = 5_000
"""Values told of one file; mixed quantization names twenty thousand modules."""

MOST_SEARCHED = 100_000
"""Values of one file among which a key is looked for."""

Path = tuple[str, ...]


def leaves(raw: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Path and value of each leaf in order; a list of plain values is one leaf. Nothing below DEEPEST is opened."""
    pending: list[tuple[Path, Any]] = [((key,), value) for key, value in reversed(list(raw.items()))]
    while pending:
        path, value = pending.pop()
        inner = _inner(value) if len(path) < DEEPEST else []
        if inner:
            pending += [((*path, key), item) for key, item in reversed(inner)]
        else:
            yield path, value


def spelled(path: Path) -> str:
    """`text_config.rope_scaling.factor`."""
    return ".".join(path)


def json_text(value: Any) -> str:
    """A value as JSON writes it, with NaN and Infinity as Python's reader takes them."""
    return json.dumps(value, ensure_ascii=False)


def _inner(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [(str(index), item) for index, item in enumerate(value)]
    return []
