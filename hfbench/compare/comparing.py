"""Two or more measurements side by side: what differs between them, then a verdict a metric, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hfbench.compare.conditions import Runs, ask
from hfbench.compare.differences import common, differences, environment_differences
from hfbench.compare.judging import WITHIN, Spoil, in_turns, judge_metric, judge_single, method_of, spoils_of_run
from hfbench.compare.matching import Match, matched, same_run, sentence
from hfbench.compare.metrics import metrics_of, single_figures
from hfbench.compare.reading import read_subject
from hfbench.compare.result import CellComparison, CompareResult, MetricVerdict, Pair, Side
from hfbench.compare.rows import rows_of
from hfbench.compare.subject import Measured, Subject
from hfbench.compare.wish import parse_wish
from hfbench.errors import UsageError
from hfbench.models.problem import counted, listed

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NO_CELL = "there is no such cell"
MOST_SINGLE = 20
"""Single figures that are shown where there are no metrics with samples."""


@dataclass(frozen=True, kw_only=True)
class Sided:
    """A subject with the letter it goes by; `turns` when its samples were taken in turns with those of A."""

    side: Side
    subject: Subject
    turns: bool = False


def compare(
    words: Sequence[str], *, fail_if: Sequence[str] = (), within: float = WITHIN, strict: bool = False
) -> CompareResult:
    """Compare what the words stand for with what the first stands for.

    A single word may stand for a run that measured several things in turns, whose rows are compared. UsageError for
    fewer than two things, for a condition that cannot be read, and for words that stand for nothing.
    """
    for text in fail_if:
        parse_wish(text)  # before anything is read
    return compare_subjects([read_subject(word) for word in words], fail_if=fail_if, within=within, strict=strict)


def compare_subjects(
    subjects: Sequence[Subject], *, fail_if: Sequence[str] = (), within: float = WITHIN, strict: bool = False
) -> CompareResult:
    """The same for subjects that were read already."""
    first, *rest = _sides(subjects)
    pairs: list[Pair] = []
    runs: list[Runs] = []
    for each in rest:
        matches = matched(first.subject, each.subject)
        pairs.append(pair := _pair(first, each, matches, within))
        runs += [Runs(letter=each.side.letter, refused=pair.sentence)] if pair.refused else _places(matches, each)
    return CompareResult(
        sides=(first.side, *(each.side for each in rest)),
        pairs=tuple(pairs),
        conditions=tuple(ask(parse_wish(text), runs) for text in fail_if),
        method=method_of(within, turns=[each.turns for each in rest]),
        strict=strict,
    )


def _sides(subjects: Sequence[Subject]) -> list[Sided]:
    if len(subjects) == 1 and (rows := rows_of(subjects[0])):
        return [_sided(place, each, turns=place > 0) for place, each in enumerate(rows)]
    if len(subjects) < 2:
        raise UsageError("one thing alone cannot be compared", where="compare", remedy="name two: A, then B")
    if len(subjects) > len(LETTERS):
        raise UsageError(f"at most {len(LETTERS)} things can be compared at once", where="compare")
    return [_sided(place, each) for place, each in enumerate(subjects)]


def _sided(place: int, subject: Subject, *, turns: bool = False) -> Sided:
    action = _few(subject.actions)
    title = f"{action} {subject.name.rpartition('-')[2]}" if subject.kind == "job" else subject.name
    side = Side(
        letter=LETTERS[place],
        given=subject.given,
        kind=subject.kind,
        title=title,
        action=action,
        model=_few(subject.models),
        state=subject.state,
        made=subject.made,
        cells=subject.cells,
        headline=subject.headline,
        notes=(*subject.notes, *_unfinished(subject)),
    )
    return Sided(side=side, subject=subject, turns=turns)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _unfinished(subject: Subject) -> Iterator[str]:
    """Sentences about what has no result."""
    without = [each for each in subject.measured if each.result is None]
    if len(subject.measured) == 1 and without:
        yield f"it has no result: {without[0].reason or without[0].state}"
    elif without:
        states = ", ".join(dict.fromkeys(each.state for each in without))
        yield f"{len(without)} of {counted(len(subject.measured), 'step')} have no result ({states})"


def _pair(a: Sided, b: Sided, matches: Match, within: float) -> Pair:
    found = common(differences(one, other) for one, other in matches.pairs)
    if not matches.pairs:
        found = environment_differences(a.subject.environment, b.subject.environment)
    cells = tuple(_cell(one, other, matches, b, within) for one, other in matches.pairs)
    told = sentence(a.subject, b.subject, found, matches, letter=b.side.letter, turns=b.turns)
    if matches.pairs and not any(cell.metrics for cell in cells):
        told = _nothing(a, b, cells)
    return Pair(
        a=a.side,
        b=b.side,
        sentence=told,
        refused=not any(cell.metrics for cell in cells),
        differences=found,
        cells=cells,
        only_a=tuple(each.place or each.action for each in matches.only_a),
        only_b=tuple(each.place or each.action for each in matches.only_b),
    )


def _nothing(a: Sided, b: Sided, cells: Sequence[CellComparison]) -> str:
    """Why there was no metric to compare."""
    if notes := dict.fromkeys(cell.note for cell in cells if cell.note):
        return f"nothing was compared: {'; '.join(list(notes)[:3])}"
    if a.subject.actions != b.subject.actions:
        return f"nothing was compared: {a.side.action} and {b.side.action} have no metric in common"
    return f"nothing was compared: {a.side.action} gives no figures with a unit"


def _cell(a: Measured, b: Measured, matches: Match, sided: Sided, within: float) -> CellComparison:
    """The metrics of two results at one place."""
    values = dict(matches.values_of(a, b))
    lacking = [f"{side} has no result: {each.reason or each.state}" for side, each in _lacking(a, b, sided)]
    if lacking:
        return CellComparison(values=values, metrics=(), note="; ".join(lacking))
    ours, theirs = metrics_of(a.result), metrics_of(b.result)
    spoils = _spoils(a, b, sided)
    metrics = tuple(
        judge_metric(ours[name], theirs[name], paired=sided.turns, spoils=spoils, within=within)
        for name in ours
        if name in theirs and ours[name].unit == theirs[name].unit
    )
    without = [f"{side} lacks {listed(gone)}" for side, gone in _gaps(ours, theirs, sided.side.letter) if gone]
    spoilt = [
        f"{side}: {metric.unreadable}"
        for side, known in (("A", ours), (sided.side.letter, theirs))
        for metric in known.values()
        if metric.unreadable
    ]
    return CellComparison(values=values, metrics=metrics or _single(a, b), lacking=(*without, *spoilt))


def _lacking(a: Measured, b: Measured, sided: Sided) -> Iterator[tuple[str, Measured]]:
    yield from ((side, each) for side, each in (("A", a), (sided.side.letter, b)) if each.result is None)


def _gaps(ours: Mapping[str, object], theirs: Mapping[str, object], letter: str) -> Iterator[tuple[str, list[str]]]:
    yield letter, [name for name in ours if name not in theirs]
    yield "A", [name for name in theirs if name not in ours]


def _single(a: Measured, b: Measured) -> tuple[MetricVerdict, ...]:
    """Where nothing has samples: the figures that stand by themselves."""
    ours, theirs = single_figures(a.result), single_figures(b.result)
    shared = [name for name in ours if name in theirs and ours[name][1] == theirs[name][1]]
    return tuple(judge_single(name, ours[name][0], theirs[name][0], ours[name][1]) for name in shared[:MOST_SINGLE])


def _spoils(a: Measured, b: Measured, sided: Sided) -> list[Spoil]:
    found = [*spoils_of_run(a.result, "A"), *spoils_of_run(b.result, sided.side.letter)]
    return in_turns(found) if sided.turns else found


def _places(matches: Match, sided: Sided) -> Iterator[Runs]:
    """Everything a condition is asked of: the pairs, and what only one of the two has."""
    letter = sided.side.letter
    for a, b in matches.pairs:
        yield Runs(
            a=a.result,
            b=b.result,
            letter=letter,
            place=b.place or a.place,
            paired=sided.turns,
            same=not sided.turns and same_run(a, b),
            spoils=tuple(_spoils(a, b, sided)),
            a_lacks=_no_result(a),
            b_lacks=_no_result(b),
        )
    for each in matches.only_a:
        yield Runs(a=each.result, letter=letter, place=each.place, a_lacks=_no_result(each), b_lacks=NO_CELL)
    for each in matches.only_b:
        yield Runs(b=each.result, letter=letter, place=each.place, a_lacks=NO_CELL, b_lacks=_no_result(each))


def _no_result(measured: Measured) -> str:
    return f"it has no result: {measured.reason or measured.state}" if measured.result is None else ""
