"""What must not be, as it is written: `tpot.p50 > 1.05x`, `throughput < 0.95x`, `peak_memory.rss_bytes > 2 GiB`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from hfbench.errors import UsageError
from hfbench.text import clip, did_you_mean, printable
from hfbench.units import UNITS, parse_quantity

EXAMPLE = "write for example tpot.p50 > 1.05x"
LONGEST = 120
"""Cells of a condition that an error repeats."""
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PATH = re.compile(r"\s*([A-Za-z_0-9][^\s<>=!]*)")
_OPERATOR = re.compile(r"\s*(<=|>=|==|!=|<|>|=)")
_NUMBER = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)")
_UNIT = re.compile(r"\s*([A-Za-z%]+(?:/s)?)")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One condition as it was written. `bound` is in `unit`; unit `x` is a share of A's value."""

    text: str
    path: str
    op: str
    bound: float
    unit: str
    path_at: int
    """Where the path begins in the text, from 0."""

    @property
    def relative(self) -> bool:
        """Whether B is measured against A, and not against a number."""
        return self.unit == "x"

    def holds(self, value: float) -> bool:
        """Whether a value in `unit` is what must not be."""
        return _OPERATORS[self.op](value, self.bound)


def parse_wish(text: str) -> Wish:
    """Read a condition; UsageError points at the place that cannot be read."""
    path = _PATH.match(text)
    if path is None:
        raise wrong(text, len(text) - len(text.lstrip()), "here the name of a metric is missing", EXAMPLE)
    at = path.end()
    found = _OPERATOR.match(text, at)
    if found is None:
        raise wrong(text, _skip(text, at), "here one of <, <=, >, >= is missing", EXAMPLE)
    if found[1] not in _OPERATORS:
        raise wrong(text, found.start(1), f"{found[1]} is no order of numbers", "use <, <=, > or >=")
    number = _NUMBER.match(text, found.end())
    if number is None:
        raise wrong(text, _skip(text, found.end()), "here a number is missing", EXAMPLE)
    unit = _UNIT.match(text, number.end())
    end = unit.end() if unit else number.end()
    if unit and unit[1] not in UNITS:
        hint = did_you_mean(unit[1], UNITS) or "units are such as x, ms, s, MiB, tok/s, %"
        raise wrong(text, unit.start(1), f"unknown unit {unit[1]!r}", hint)
    if text[end:].strip():
        raise wrong(text, _skip(text, end), "the condition was over before this", "give --fail-if once for each")
    try:
        bound, told = parse_quantity(text[number.start() : end])
    except UsageError:
        raise wrong(text, number.start(1), "this number is too large", EXAMPLE) from None
    if told == "%":
        raise wrong(
            text, number.start(1), "a share of what, is not told", f"write {bound / 100:g}x for {bound:g} % of A"
        )
    return Wish(text=text.strip(), path=path[1], op=found[1], bound=bound, unit=told or "", path_at=path.start(1))


def wrong(text: str, at: int, found: str, remedy: str) -> UsageError:
    """An error at a place of a condition, counted from 0."""
    shown = clip(printable(text), LONGEST)
    return UsageError(f"{shown!r}, column {at + 1}: {found}", where="--fail-if", remedy=remedy)


def _skip(text: str, at: int) -> int:
    """The next place that is no blank."""
    return at + len(text[at:]) - len(text[at:].lstrip())
