"""A value read from a machine, or the reason there is none: unknown is never zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Unavailable:
    """Stands where a value could not be read. `reason` is a clause fit for a table cell or a sentence."""

    reason: str


Value: TypeAlias = float | Unavailable
"""A number in the unit its field names, or the reason it is unknown."""


def known(value: T | Unavailable) -> T | None:
    """The value itself, or None when it could not be read."""
    return None if isinstance(value, Unavailable) else value
