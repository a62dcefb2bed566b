"""Data of others as it may be kept and told on: JSON of bounded depth, of what every database takes."""

from __future__ import annotations

import datetime
import json
from typing import Any

DEEPEST = 20
"""Lists and mappings within each other."""


class TooDeepError(ValueError):
    """Data nested beyond what anybody means."""

    def __init__(self) -> None:
        super().__init__("is nested too deeply")


def read_json(text: bytes | bytearray | str) -> Any:
    """The JSON of a request or a file. ValueError for what is none, and TooDeepError for what is nested too deeply."""
    try:
        told = json.loads(text)
    except RecursionError as error:
        raise TooDeepError from error
    level = [told]
    for _ in range(DEEPEST + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for some in inner for each in some if isinstance(each, dict | list)]
        if not level:
            return told
    raise TooDeepError


def plain(value: Any, depth: int = 0) -> Any:
    """As JSON has it: dates and odd numbers as text, keys as text, no NUL and no half characters. TooDeepError beyond
    the depth."""
    if depth > DEEPEST:
        raise TooDeepError
    if isinstance(value, dict):
        return {plain_text(str(key)): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if value is None or isinstance(value, int):
        return value
    return plain_text(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def plain_text(text: str) -> str:
    """Without what no database keeps: NUL and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
