"""What must not be: `tpot.p50 > 1.05x`, `throughput < 0.95x`, `peak_memory.rss_bytes > 2 GiB`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.compare.intervals import interval_of
from hfbench.compare.judging import Spoil, estimate, in_turns, spoilt
from hfbench.compare.metrics import STATISTICS, Metric, metrics_of, single_figures
from hfbench.compare.result import Condition, Outcome
from hfbench.errors import UsageError
from hfbench.gpu.timing.formulas import RATIO
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import Interval
from hfbench.gpu.timing.verdicts import spoiling
from hfbench.text import did_you_mean, printable
from hfbench.units import UNITS, convert, parse_quantity, show_value

EXAMPLE = "write for example tpot.p50 > 1.05x"
USUAL = "p50"
"""The statistic of a metric that is named alone."""
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


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Two results that a condition is asked of; `place` names their cell, empty for two jobs."""

    a: Mapping[str, Any] | None
    b: Mapping[str, Any] | None
    letter: str = "B"
    place: str = ""
    paired: bool = False
    spoils: tuple[Spoil, ...] = ()

    @property
    def who(self) -> str:
        """`B`, or `B at batch=4`."""
        return f"{self.letter} at {self.place}" if self.place else self.letter


def parse_wish(text: str) -> Wish:
    """Read a condition; UsageError points at the place that cannot be read."""
    path = _PATH.match(text)
    if path is None:
        raise _wrong(text, len(text) - len(text.lstrip()), "here the name of a metric is missing", EXAMPLE)
    at = path.end()
    found = _OPERATOR.match(text, at)
    if found is None:
        raise _wrong(text, _skip(text, at), "here one of <, <=, >, >= is missing", EXAMPLE)
    if found[1] not in _OPERATORS:
        raise _wrong(text, found.start(1), f"{found[1]} is no order of numbers", "use <, <=, > or >=")
    number = _NUMBER.match(text, found.end())
    if number is None:
        raise _wrong(text, _skip(text, found.end()), "here a number is missing", EXAMPLE)
    unit = _UNIT.match(text, number.end())
    end = unit.end() if unit else number.end()
    if unit and unit[1] not in UNITS:
        hint = did_you_mean(unit[1], UNITS) or "units are such as x, ms, s, MiB, tok/s, %"
        raise _wrong(text, unit.start(1), f"unknown unit {unit[1]!r}", hint)
    if text[end:].strip():
        raise _wrong(text, _skip(text, end), "the condition was over before this", "give --fail-if once for each")
    bound, told = parse_quantity(text[number.start() : end])
    if told == "%":
        raise _wrong(
            text, number.start(1), "a share of what, is not told", f"write {bound / 100:g}x for {bound:g} % of A"
        )
    return Wish(text=text.strip(), path=path[1], op=found[1], bound=bound, unit=told or "", path_at=path.start(1))


def ask(wish: Wish, runs: Sequence[Runs]) -> Condition:
    """Ask a condition of every pair of results: the worst that came of it, with a sentence for each that did not pass.

    UsageError when not one result has such a metric.
    """
    having = [each for each in runs if _known(wish, each)]
    if runs and not having:
        raise _nowhere(wish, runs)
    told = [(each, *_asked(wish, each)) for each in having]
    outcomes = [outcome for _, outcome, _ in told]
    worst = next((each for each in Outcome if each in outcomes and each is not Outcome.PASSES), Outcome.PASSES)
    if not told:
        return Condition(text=wish.text, outcome=Outcome.NOT_ASKED, details=("nothing was compared",))
    quiet = Outcome.PASSES if len(told) > 1 else None
    details = tuple(f"{each.who}: {sentence}" for each, outcome, sentence in told if outcome is not quiet)
    return Condition(text=wish.text, outcome=worst, details=details)


def _known(wish: Wish, runs: Runs) -> bool:
    """Whether one of two results has the metric: a step that measures something else is not asked."""
    for side in (runs.a, runs.b):
        known = metrics_of(side)
        if _split(wish.path, known)[0] in known or wish.path in single_figures(side):
            return True
    return False


def _asked(wish: Wish, runs: Runs) -> tuple[Outcome, str]:
    """How a condition went for two results, and why."""
    a, b = metrics_of(runs.a), metrics_of(runs.b)
    name, statistic = _split(wish.path, {**a, **b})
    if name in a and name in b:
        return _of_samples(wish, a[name], b[name], statistic, runs)
    if name in b and not wish.relative:
        return _of_samples(wish, b[name], b[name], statistic, runs)
    return _of_figures(wish, runs)


def _of_samples(wish: Wish, a: Metric, b: Metric, statistic: str, runs: Runs) -> tuple[Outcome, str]:
    try:
        found = estimate(a, b, statistic, paired=runs.paired and wish.relative)
    except ValueError as error:
        return Outcome.NOT_ASKED, str(error)
    if wish.relative:
        value, around, reason = found.ratio, found.interval, found.reason
    else:
        value, around, reason = found.b, _in_unit(wish, b, interval_of(b.values, statistic)), found.reason
        value = _converted(wish, found.b, b.unit)
    if value is None:
        return Outcome.UNDECIDED, reason
    shown = f"{statistic} of {b.name} is {_value(wish, value)}{_range(wish, around)}"
    if wish.relative:
        shown += f" of A ({show_value(found.b, b.unit)} against {show_value(found.a, a.unit)})"
    if around is None:
        return Outcome.UNDECIDED, f"{shown}, but {reason or 'it has no interval'}"
    low, high = wish.holds(around.low), wish.holds(around.high)
    if low != high:
        return Outcome.UNDECIDED, f"{shown}: the interval holds {_value(wish, wish.bound)}"
    spoils = in_turns(runs.spoils) if runs.paired else [*runs.spoils, *_own(a, b)]
    if spoilt(around, spoils, bound=wish.bound):
        would = "would fail" if low else "would pass"
        return Outcome.UNDECIDED, f"{shown}; it {would}, but {spoils[0]}"
    return (Outcome.FAILS if low else Outcome.PASSES), shown


def _of_figures(wish: Wish, runs: Runs) -> tuple[Outcome, str]:
    """A single figure is judged as it stands: sizes are exact, and a time says that it is one."""
    a, b = single_figures(runs.a), single_figures(runs.b)
    lacks = [
        side
        for side, known in (("A", a), (runs.letter, b))
        if wish.path not in known and (wish.relative or side != "A")
    ]
    if lacks:
        return Outcome.NOT_ASKED, f"{' and '.join(lacks)} has no {wish.path}"
    number, unit = b[wish.path]
    first = a[wish.path][0] if wish.relative else 1.0
    if not first:
        return Outcome.UNDECIDED, f"{wish.path} of A is zero"
    value = number / first if wish.relative else _converted(wish, number, unit)
    of = f" of A ({show_value(number, unit)} against {show_value(first, unit)})" if wish.relative else ""
    alone = "" if unit == "B" else "; a single figure, without an interval"
    shown = f"{wish.path} is {_value(wish, value)}{of}{alone}"
    return (Outcome.FAILS if wish.holds(value) else Outcome.PASSES), shown


def _split(path: str, known: Mapping[str, Metric]) -> tuple[str, str]:
    """Metric and statistic of a path: `tpot` is `tpot.p50`, and `metrics.` may stand before it."""
    path = path.removeprefix("metrics.")
    if path in known:
        return path, USUAL
    name, _, last = path.rpartition(".")
    return (name, last) if last in STATISTICS else (path, USUAL)


def _converted(wish: Wish, value: float, unit: str) -> float:
    if not wish.unit or unit not in UNITS:
        if wish.unit or (unit in UNITS and UNITS[unit][0] != "ratio"):
            told = f"{wish.path} is measured in {unit}" if unit in UNITS else f"{wish.path} has no unit"
            raise _wrong(wish.text, wish.path_at, told, f"write the bound in {unit}" if unit else "write it alone")
        return value
    try:
        return convert(value, unit, wish.unit)
    except UsageError as error:
        raise _wrong(
            wish.text, wish.path_at, error.found, "write the bound in a unit of the metric, or with x"
        ) from None


def _in_unit(wish: Wish, metric: Metric, interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return Interval(*(_converted(wish, end, metric.unit) for end in (interval.low, interval.high)))


def _own(a: Metric, b: Metric) -> Iterator[Spoil]:
    for side, each in (("A", a), ("B", b)):
        for found in spoiling(Samples(each.name, RATIO, list(each.values))):
            yield Spoil(side=side, word=found.word, detail=found.detail)


def _value(wish: Wish, value: float) -> str:
    return f"{value:.3f}x" if wish.relative else f"{value:.4g} {wish.unit}".rstrip()


def _range(wish: Wish, around: Interval | None) -> str:
    return "" if around is None else f" [{_value(wish, around.low)} .. {_value(wish, around.high)}]"


def _nowhere(wish: Wish, runs: Sequence[Runs]) -> UsageError:
    known = dict.fromkeys(
        name for each in runs for side in (each.a, each.b) for name in (*metrics_of(side), *single_figures(side))
    )
    name, _ = _split(wish.path, {})
    shown = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
    hint = did_you_mean(name, known) or (f"there is {shown}" if known else "the results hold no figures")
    return _wrong(wish.text, wish.path_at, f"there is no metric {name!r} to compare", hint)


def _skip(text: str, at: int) -> int:
    """The next place that is no blank."""
    return at + len(text[at:]) - len(text[at:].lstrip())


def _wrong(text: str, at: int, found: str, remedy: str) -> UsageError:
    shown = printable(text)
    return UsageError(f"{shown!r}, column {at + 1}: {found}", where="--fail-if", remedy=remedy)
