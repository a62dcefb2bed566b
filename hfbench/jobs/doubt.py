"""Whether a figure of a result is to be believed: one rule for every list, table, map and front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

SIGN = "?"
"""Stands behind a figure that is in doubt."""
MEANING = f"{SIGN} in doubt: too few samples for an interval, or a verdict like busy-machine"
DISTRUSTED = ("not-finite", "throttled", "drift", "busy-machine")
"""Verdicts after which no median of a run is believed; the others are about its tail, its tokens or its interval."""
PERCENTILES = {"p90": 90.0, "p99": 99.0}


def doubt(count: int, *, interval: bool, verdicts: Iterable[str] = ()) -> str:
    """What speaks against a median of `count` samples, such as `n=1, busy-machine`; empty where nothing does.

    `interval` says whether there is one of the median, `verdicts` are the words said of the whole run.
    """
    few = () if interval else (f"n={count:,}",)
    return ", ".join((*few, *(word for word in DISTRUSTED if word in set(verdicts))))


def tells_doubt(headline: str) -> bool:
    """Whether a figure of a headline, which two spaces part, is in doubt."""
    return any(part.endswith(SIGN) for part in headline.split("  "))


def verdicts_of(result: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """What a result says of its own run: `word`, `detail` and `next` of each verdict, as far as they can be read."""
    told = (result or {}).get("verdicts")
    return [each for each in told if isinstance(each, Mapping)] if isinstance(told, list) else []


def verdicts_in(result: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The words of these verdicts, each once."""
    words = (each.get("word") for each in verdicts_of(result))
    return tuple(dict.fromkeys(word for word in words if isinstance(word, str)))


def samples_for(statistic: str) -> int:
    """How many samples a percentile takes, so that one of them may lie above it: 10 for p90, 100 for p99; else 1."""
    return math.ceil(100 / (100 - PERCENTILES[statistic])) if statistic in PERCENTILES else 1
