"""Versions as numbers: what comes before a local part or a pre-release, compared place by place."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)")


def numbers(version: str) -> tuple[int, ...]:
    """`2.13.0+cu130` -> (2, 13, 0); empty for what begins with no number."""
    match = _NUMBERS.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()


def same(one: str, other: str, places: int) -> bool:
    """Whether two versions agree in their first places; a place that is not written is 0."""
    return _padded(one, places) == _padded(other, places)


def older(one: str, other: str, places: int = 4) -> bool:
    """Whether `one` comes before `other`, looking at so many places."""
    return _padded(one, places) < _padded(other, places)


def _padded(version: str, places: int) -> tuple[int, ...]:
    return (*numbers(version), *(0,) * places)[:places]
