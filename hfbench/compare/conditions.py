"""Asks what must not be of measurements: of every candidate and cell, and what becomes of one that cannot answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.compare.intervals import ratio_of
from hfbench.compare.judging import BEYOND, Spoil, around, estimate, in_turns, spoilt, without_interval
from hfbench.compare.metrics import STATISTICS, Metric, metrics_of, single_figures
from hfbench.compare.result import Condition, Outcome
from hfbench.compare.wish import Wish, wrong
from hfbench.errors import UsageError
from hfbench.gpu.timing.formulas import RATIO
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import Interval
from hfbench.gpu.timing.verdicts import spoiling
from hfbench.text import did_you_mean
from hfbench.units import UNITS, convert, show_value

USUAL = "p50"
"""The statistic of a metric that is named alone."""
NOT_ONCE = "it could be asked of nothing, and such a gate has seen nothing"


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Two results that a condition is asked of; `place` names their cell, empty for two jobs.

    A side without a result says why. `refused` says why the two could not be compared at all.
    """

    a: Mapping[str, Any] | None = None
    b: Mapping[str, Any] | None = None
    letter: str = "B"
    place: str = ""
    paired: bool = False
    same: bool = False
    """Both are one run: a share of A tells nothing then."""
    spoils: tuple[Spoil, ...] = ()
    a_lacks: str = ""
    b_lacks: str = ""
    refused: str = ""

    @property
    def who(self) -> str:
        """`B`, or `B at batch=4`."""
        return f"{self.letter} at {self.place}" if self.place else self.letter


@dataclass(frozen=True, kw_only=True)
class Single:
    """A figure that stands by itself, without samples."""

    value: float
    unit: str


def ask(wish: Wish, runs: Sequence[Runs]) -> Condition:
    """Ask a condition of every candidate at every place, with a sentence for each that did not pass.

    It fails where it holds, where a candidate lacks what A has, and where it could be asked of nothing at all.
    UsageError when not one result has such a metric.
    """
    compared = [each for each in runs if not each.refused]
    having = [each for each in runs if each.refused or _known(wish, each)]
    if compared and not any(_known(wish, each) for each in compared):
        raise _nowhere(wish, compared)
    told = [(each, *_asked(wish, each)) for each in having]
    outcomes = {outcome for _, outcome, _ in told}
    quiet = Outcome.PASSES if len(told) > 1 else None
    details = [f"{each.who}: {sentence}" for each, outcome, sentence in told if outcome is not quiet]
    if outcomes <= {Outcome.NOT_ASKED}:
        return Condition(text=wish.text, outcome=Outcome.FAILS, details=(*details, NOT_ONCE))
    worst = next((each for each in (Outcome.FAILS, Outcome.UNDECIDED) if each in outcomes), Outcome.PASSES)
    return Condition(text=wish.text, outcome=worst, details=tuple(details))


def _known(wish: Wish, runs: Runs) -> bool:
    """Whether one of two results has the metric: a step that measures something else is not asked."""
    for side in (runs.a, runs.b):
        known = metrics_of(side)
        if _split(wish.path, known)[0] in known or wish.path in single_figures(side):
            return True
    return False


def _asked(wish: Wish, runs: Runs) -> tuple[Outcome, str]:
    """How a condition went for two results, and why: it is about the candidate, which must have what A has."""
    if runs.refused:
        return Outcome.FAILS, runs.refused
    ours, theirs = (_told(wish, side) for side in (runs.a, runs.b))
    if theirs is None:
        lacks = f"there is no {wish.path}{_why(runs.b_lacks)}"
        if ours is None:
            return Outcome.NOT_ASKED, f"not asked: {lacks}, nor has A one{_why(runs.a_lacks)}"
        return Outcome.FAILS, f"{lacks}, and A has one"
    if not wish.relative:
        return _of_one(wish, theirs, runs)
    if ours is None:
        return Outcome.NOT_ASKED, f"not asked: A has no {wish.path}{_why(runs.a_lacks)}"
    if runs.same:
        return Outcome.UNDECIDED, f"A and {runs.letter} are the same run, and tell nothing of a change"
    if ours.unit == theirs.unit and isinstance(ours, Single) and isinstance(theirs, Single):
        return _of_figures(wish, ours, theirs)
    if ours.unit == theirs.unit and isinstance(ours, Metric) and isinstance(theirs, Metric):
        return _of_samples(wish, ours, theirs, runs)
    return Outcome.FAILS, f"{wish.path} cannot be compared: A tells {_kind(ours)}, {runs.letter} {_kind(theirs)}"


def _told(wish: Wish, result: Mapping[str, Any] | None) -> Metric | Single | None:
    """What a result has under the path of a condition, None where it lacks the metric or that statistic of it."""
    known = metrics_of(result)
    name, statistic = _split(wish.path, known)
    if name in known:
        return known[name] if known[name].statistic(statistic) is not None else None
    found = single_figures(result).get(wish.path)
    return Single(value=found[0], unit=found[1]) if found else None


def _kind(told: Metric | Single) -> str:
    return f"{'samples' if isinstance(told, Metric) else 'a single figure'} in {told.unit or 'no unit'}"


def _why(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _of_one(wish: Wish, told: Metric | Single, runs: Runs) -> tuple[Outcome, str]:
    """The candidate's own value against a number: A, and what was seen there, plays no part."""
    if isinstance(told, Single):
        return _stands(wish, _converted(wish, told.value, told.unit), "", told.unit)
    statistic = _statistic(wish, told)
    value = _converted(wish, told.statistic(statistic) or 0.0, told.unit)
    interval = _in_unit(wish, told, around(told, statistic))
    shown = f"{statistic} of {told.name} is {_value(wish, value)}{_range(wish, interval)}"
    spoils = [each for each in (*runs.spoils, *_own({runs.letter: told})) if each.side != "A"]
    return _weighed(wish, shown, interval, spoils, runs, without_interval(statistic, told.count))


def _of_samples(wish: Wish, a: Metric, b: Metric, runs: Runs) -> tuple[Outcome, str]:
    """A statistic of the candidate as a share of A's."""
    statistic = _statistic(wish, b)
    found = estimate(a, b, statistic, paired=runs.paired)
    if found.ratio is None:
        return Outcome.UNDECIDED, found.reason
    shown = (
        f"{statistic} of {b.name} is {_value(wish, found.ratio)}{_range(wish, found.interval)}"
        f" of A ({show_value(found.b, b.unit)} against {show_value(found.a, a.unit)})"
    )
    spoils = (*runs.spoils, *_own({"A": a, runs.letter: b}))
    return _weighed(wish, shown, found.interval, spoils, runs, found.reason)


def _weighed(
    wish: Wish, shown: str, interval: Interval | None, spoils: Sequence[Spoil], runs: Runs, reason: str
) -> tuple[Outcome, str]:
    """What an interval says of a condition, and whether what speaks against the run outweighs it."""
    if interval is None:
        return Outcome.UNDECIDED, f"{shown}, but {reason}"
    low, high = wish.holds(interval.low), wish.holds(interval.high)
    if low != high:
        return Outcome.UNDECIDED, f"{shown}: the interval holds {_value(wish, wish.bound)}"
    against = in_turns(spoils) if runs.paired else list(spoils)
    if spoilt(interval, against, bound=wish.bound):
        would = "would fail" if low else "would pass"
        return Outcome.UNDECIDED, f"{shown}; it {would}, but {against[0]}"
    return (Outcome.FAILS if low else Outcome.PASSES), shown


def _of_figures(wish: Wish, a: Single, b: Single) -> tuple[Outcome, str]:
    """A single figure of the candidate as a share of A's."""
    ratio = ratio_of(a.value, b.value)
    if ratio is None:
        return Outcome.UNDECIDED, f"{wish.path} of A is zero" if not a.value else f"{wish.path}: {BEYOND}"
    return _stands(wish, ratio, f" of A ({show_value(b.value, b.unit)} against {show_value(a.value, a.unit)})", b.unit)


def _stands(wish: Wish, value: float, of: str, unit: str) -> tuple[Outcome, str]:
    """A single figure is judged as it stands: sizes are exact, and a time says that it is one."""
    alone = "" if unit == "B" else "; a single figure, without an interval"
    shown = f"{wish.path} is {_value(wish, value)}{of}{alone}"
    return (Outcome.FAILS if wish.holds(value) else Outcome.PASSES), shown


def _statistic(wish: Wish, metric: Metric) -> str:
    return _split(wish.path, {metric.name: metric})[1]


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
            raise wrong(wish.text, wish.path_at, told, f"write the bound in {unit}" if unit else "write it alone")
        return value
    try:
        return convert(value, unit, wish.unit)
    except UsageError as error:
        raise wrong(
            wish.text, wish.path_at, error.found, "write the bound in a unit of the metric, or with x"
        ) from None


def _in_unit(wish: Wish, metric: Metric, interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return Interval(*(_converted(wish, end, metric.unit) for end in (interval.low, interval.high)))


def _own(sides: Mapping[str, Metric]) -> Iterator[Spoil]:
    for side, each in sides.items():
        for found in spoiling(Samples(each.name, RATIO, list(each.values))):
            yield Spoil(side=side, word=found.word, detail=found.detail)


def _value(wish: Wish, value: float) -> str:
    return f"{value:.3f}x" if wish.relative else f"{value:.4g} {wish.unit}".rstrip()


def _range(wish: Wish, interval: Interval | None) -> str:
    return "" if interval is None else f" [{_value(wish, interval.low)} .. {_value(wish, interval.high)}]"


def _nowhere(wish: Wish, runs: Sequence[Runs]) -> UsageError:
    known = dict.fromkeys(
        name for each in runs for side in (each.a, each.b) for name in (*metrics_of(side), *single_figures(side))
    )
    name, _ = _split(wish.path, {})
    shown = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
    hint = did_you_mean(name, known) or (f"there is {shown}" if known else "the results hold no figures")
    return wrong(wish.text, wish.path_at, f"there is no metric {name!r} to compare", hint)
