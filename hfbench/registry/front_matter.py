"""The data at the head of a model card: YAML between two lines of dashes, read without aliases and within limits."""

from __future__ import annotations

import datetime
from typing import Any

import yaml

LONGEST = 64 * 1024
"""Characters of the data."""
DEEPEST = 20
FENCE = "---"


class FrontMatterError(ValueError):
    """Data that cannot be read; the sentence says where."""


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Refuses aliases: a card of a kilobyte could stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise FrontMatterError("the card uses YAML aliases, which are not taken here")
        return super().compose_node(parent, index)


def front_matter(text: str) -> dict[str, Any]:
    """The data of a card as plain JSON; empty when there is none or it cannot be read."""
    try:
        return read_front_matter(text)
    except FrontMatterError:
        return {}


def read_front_matter(text: str) -> dict[str, Any]:
    """The data of a card as plain JSON; FrontMatterError says what is wrong with it."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != FENCE:
        return {}
    end = next((place for place, line in enumerate(lines[1:], 1) if line.strip() == FENCE), None)
    if end is None:
        raise FrontMatterError("the data at the head of the card has no end: a line of three dashes is missing")
    source = "\n".join(lines[1:end])
    if len(source) > LONGEST:
        raise FrontMatterError(f"the data at the head of the card is longer than {LONGEST:,} characters")
    try:
        told = yaml.load(source, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FrontMatterError(
            f"the data at the head of the card is no YAML: {' '.join(str(error).split())}"
        ) from error
    if told is None:
        return {}
    if not isinstance(told, dict):
        raise FrontMatterError("the data at the head of the card is no mapping of keys to values")
    plain: dict[str, Any] = _plain(told, 0)
    return plain


def _plain(value: Any, depth: int) -> Any:
    """As JSON has it: dates as text, keys as text, nothing too deep."""
    if depth > DEEPEST:
        raise FrontMatterError("the data at the head of the card is nested too deeply")
    if isinstance(value, dict):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, int) else str(value)
