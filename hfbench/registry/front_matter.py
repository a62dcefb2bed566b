"""The data at the head of a model card: YAML between two lines of dashes, read without aliases and within limits."""

from __future__ import annotations

from typing import Any

import yaml

from hfbench.registry.plain import DEEPEST, TooDeepError, plain

LONGEST = 64 * 1024
"""Characters of the data."""
MOST_NODES = 20_000
"""Keys, values and lists: the data of a card has some dozens."""
LONGEST_NUMBER = 100
"""Digits: a longer one takes ever longer to read and to write."""
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
FENCE = "---"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FrontMatterError(ValueError):
    """Data that cannot be read; the sentence says where."""


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
        _require_plain(source)
        told = yaml.load(source, _LOADER)
    except FrontMatterError:
        raise
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        raise FrontMatterError(
            f"the data at the head of the card is no YAML: {' '.join(str(error).split())}"
        ) from error
    if told is None:
        return {}
    if not isinstance(told, dict):
        raise FrontMatterError("the data at the head of the card is no mapping of keys to values")
    try:
        found: dict[str, Any] = plain(told)
    except TooDeepError as error:
        raise FrontMatterError(f"the data at the head of the card {error}") from error
    return found


def _require_plain(source: str) -> None:
    """FrontMatterError for data that stands for more than it says: aliases, deep nesting, and crowds of values.

    Told by its events, before any value is made: a card of a kilobyte could stand for gigabytes.
    """
    depth = nodes = 0
    for event in yaml.parse(source, _LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise FrontMatterError("the card uses YAML anchors or aliases, which are not taken here")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST:
            raise FrontMatterError(f"the data at the head of the card {TooDeepError()}")
        if nodes > MOST_NODES:
            raise FrontMatterError(f"the data at the head of the card has more than {MOST_NODES:,} values")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > LONGEST_NUMBER and _may_be_number(event):
            raise FrontMatterError(f"a number of the card has more than {LONGEST_NUMBER} digits")


def _may_be_number(event: yaml.ScalarEvent) -> bool:
    """Whether YAML would read a value as a number: it is called one, or not quoted and begins as one."""
    if event.tag in NUMBERS:
        return True
    return event.implicit[0] and event.value[:1] in set("+-.0123456789") and " " not in event.value.strip()
