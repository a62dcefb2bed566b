"""Resource limits as /proc/self/limits tells them."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNLIMITED = -1

_ROW = re.compile(r"(Max [a-z ]+?)\s{2,}(\d+|unlimited)\s+(\d+|unlimited)")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a process may have now, and how far it may raise that itself; -1 is without a limit."""

    soft: int
    hard: int


def read_limits(text: str) -> dict[str, Limit]:
    """`Max open files` and the like, by these names."""
    return {
        row[1]: Limit(soft=_number(row[2]), hard=_number(row[3])) for row in map(_ROW.match, text.splitlines()) if row
    }


def _number(told: str) -> int:
    return UNLIMITED if told == "unlimited" else int(told)
